/**
 * Draws docs/pictures/*.svg, light and dark, from the Mermaid texts in the same folder. With --check, writes nothing and fails if a file is
 * stale.
 */
import { readdir, readFile } from 'node:fs/promises'
import { writeGenerated } from './generated.ts'
import { drawBlocks } from './pictures/blocks.ts'
import { drawSequence } from './pictures/sequence.ts'
import { type Drawing, documentOf, type Theme } from './pictures/svg.ts'

const FOLDER = 'docs/pictures'

const THEMES: Readonly<Record<string, Theme>> = {
  light: {
    paper: '#ffffff',
    ink: '#1f2328',
    faint: '#59636e',
    line: '#afb8c1',
    box: '#f6f8fa',
    inner: '#ffffff',
  },
  dark: {
    paper: '#0d1117',
    ink: '#f0f6fc',
    faint: '#9198a1',
    line: '#3d444d',
    box: '#151b23',
    inner: '#212830',
  },
}

const KINDS: Readonly<Record<string, (source: string) => Drawing>> = {
  'block-beta': drawBlocks,
  sequenceDiagram: drawSequence,
}

/** Parses a picture. Its first line is `%% TITLE`, the second names the kind. */
function drawn(source: string): { readonly title: string; readonly drawing: Drawing } {
  const [, title = '', kind = ''] = /^%% (.+)\n(.+)\n/.exec(source) ?? []
  const draw = KINDS[kind]
  if (draw === undefined) throw new Error(`Unknown kind of picture: ${kind}`)
  return { title, drawing: draw(source.slice(source.indexOf('\n') + 1)) }
}

for (const file of (await readdir(FOLDER)).filter((file) => file.endsWith('.mmd'))) {
  const { title, drawing } = drawn(await readFile(`${FOLDER}/${file}`, 'utf8'))
  for (const [name, theme] of Object.entries(THEMES))
    await writeGenerated(
      `${FOLDER}/${file.replace('.mmd', `.${name}.svg`)}`,
      documentOf(title, drawing, theme),
    )
}
