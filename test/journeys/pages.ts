import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'

export const ROOT = path.resolve(import.meta.dirname, '../..')

/**
 * A fenced code block of a Markdown page. HTML comments directly before it set its members: with `<!-- needs: docker -->` it runs only where
 * docker exists; `<!-- answers: 403 -->` is the expected status of its last request, if not a success.
 */
export type Block = {
  readonly page: string
  readonly line: number
  readonly language: string
  readonly text: string
  readonly needs?: string
  readonly answers?: string
  /** The block that follows immediately, if its language is text or json: the expected output of this one. */
  readonly output?: Block
}

/** All Markdown pages, the README first. */
export function pages(): readonly string[] {
  const top = readdirSync(ROOT).filter((name) => name.endsWith('.md') && name !== 'README.md')
  return ['README.md', ...top, ...['docs', 'examples'].flatMap(pagesIn)]
}

const pagesIn = (folder: string): readonly string[] =>
  readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `${folder}/${name}`)
    .sort()

export const textOf = (page: string): string => readFileSync(path.join(ROOT, page), 'utf8')

export function blocksOf(page: string): readonly Block[] {
  const text = textOf(page)
  const found = [...text.matchAll(/((?:^<!-- \w+: .+ -->\n)*)^```(\w*)\n([\s\S]*?)^```$/gm)]
  const blocks = found.map(([all, comments = '', language = '', content = ''], index) => ({
    page,
    line: text.slice(0, found[index]?.index).split('\n').length,
    language,
    text: content,
    end: (found[index]?.index ?? 0) + all.length,
    ...Object.fromEntries(
      [...comments.matchAll(/<!-- (\w+): (.+) -->/g)].map(([, name, value]) => [name, value]),
    ),
  }))
  return blocks.map((block, index) => {
    const next = blocks[index + 1]
    const isOutput =
      next !== undefined &&
      ['text', 'json'].includes(next.language) &&
      text.slice(block.end, found[index + 1]?.index).trim() === ''
    return isOutput ? { ...block, output: next } : block
  })
}
