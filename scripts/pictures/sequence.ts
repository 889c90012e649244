import { arrow, box, type Drawing, line, text } from './svg.ts'

/** Draws the parts of Mermaid's `sequenceDiagram` that these pictures use: participants, messages, answers and notes. */
type Step =
  | { readonly kind: 'asks' | 'answers'; readonly from: string; readonly to: string; readonly says: string }
  | { readonly kind: 'note'; readonly from: string; readonly to: string; readonly says: string }

type Column = { readonly label: readonly string[]; readonly x: number }

const COLUMN = 172
const HEAD = 48
const STEP = 31
const MARGIN = 12

export function drawSequence(source: string): Drawing {
  const lines = source
    .split('\n')
    .slice(1)
    .map((line) => line.trim())
    .filter(Boolean)
  const columns = columnsOf(lines)
  const steps = lines.filter((line) => !line.startsWith('participant ')).map(stepOf)
  const height = MARGIN + HEAD + steps.length * STEP + 2 * MARGIN
  return {
    width: columns.size * COLUMN + 2 * MARGIN,
    height,
    parts: [
      ...[...columns.values()].flatMap((column) => drawHead(column, height)),
      ...steps.flatMap((step, index) => drawStep(step, columns, MARGIN + HEAD + (index + 1) * STEP)),
    ],
  }
}

function columnsOf(lines: readonly string[]): ReadonlyMap<string, Column> {
  const named = lines.flatMap((line) => {
    const [, id, label] = /^participant (\w+) as (.+)$/.exec(line) ?? []
    return id === undefined || label === undefined ? [] : [[id, label] as const]
  })
  return new Map(
    named.map(([id, label], index) => [
      id,
      { label: label.split(/<br\/?>/), x: MARGIN + COLUMN * (index + 0.5) },
    ]),
  )
}

function stepOf(line: string): Step {
  const [, noteFrom, noteTo = noteFrom, note] = /^Note over (\w+)(?:,(\w+))?: (.+)$/.exec(line) ?? []
  if (noteFrom !== undefined && noteTo !== undefined && note !== undefined)
    return { kind: 'note', from: noteFrom, to: noteTo, says: note }
  const [, from, dashes, to, says] = /^(\w+)(--?)>>(\w+): (.+)$/.exec(line) ?? []
  if (from === undefined || to === undefined || says === undefined) throw new Error(`Cannot parse: ${line}`)
  return { kind: dashes === '-' ? 'asks' : 'answers', from, to, says }
}

function drawHead({ label, x }: Column, height: number): string[] {
  const own = { x: x - COLUMN / 2 + 6, y: MARGIN, width: COLUMN - 12, height: HEAD }
  const top = MARGIN + HEAD / 2 - (label.length - 1) * 9
  return [
    line({ x, y: MARGIN + HEAD }, { x, y: height - MARGIN }, 'life'),
    box(own, 'box'),
    ...label.map((content, index) =>
      text({ x, y: top + index * 18 }, content, index === 0 ? 'label' : 'small', own.width),
    ),
  ]
}

function drawStep(step: Step, columns: ReadonlyMap<string, Column>, y: number): string[] {
  const [from, to] = [step.from, step.to].map((id) => columns.get(id)?.x)
  if (from === undefined || to === undefined)
    throw new Error(`Unknown participant: ${step.from} or ${step.to}`)
  const middle = { x: (from + to) / 2, y: y - 9 }
  const room = Math.abs(to - from)
  if (step.kind !== 'note')
    return [text(middle, step.says, 'message', room), arrow({ x: from, y }, { x: to, y }, step.kind)]
  const width = room + COLUMN - 12
  const own = { x: Math.min(from, to) - COLUMN / 2 + 6, y: y - 18, width, height: 24 }
  return [box(own, 'note'), text({ x: middle.x, y: y - 6 }, step.says, 'small', width)]
}
