import { arrow, box, type Drawing, type Rectangle, text } from './svg.ts'

/** Draws a grid of blocks from Mermaid's `block-beta`: columns, labels, spans, nested blocks, arrows. */
type Grid = { columns: number; readonly gap: number; readonly rows: Block[][] }
type Block = { readonly id: string; readonly span: number; readonly content: readonly string[] | Grid }
type Arrow = { readonly from: string; readonly to: string }

const WIDTH = 860
const MARGIN = 12
/** Gaps between blocks and between nested blocks. */
const GAP = { outer: 20, inner: 8 }
const LINE = 19

export function drawBlocks(source: string): Drawing {
  const { grid, arrows } = read(source)
  const places = new Map<string, Rectangle>()
  const room = { x: MARGIN, y: MARGIN, width: WIDTH - 2 * MARGIN, height: heightOf(grid, WIDTH - 2 * MARGIN) }
  const parts = draw(grid, room, places, 'box')
  const at = (id: string): Rectangle => {
    const place = places.get(id)
    if (place === undefined) throw new Error(`There is no block ${id}`)
    return place
  }
  return {
    width: WIDTH,
    height: room.height + 2 * MARGIN,
    parts: [...parts, ...arrows.map(({ from, to }) => between(at(from), at(to)))],
  }
}

function read(source: string): { readonly grid: Grid; readonly arrows: readonly Arrow[] } {
  const outer: Grid = { columns: 1, gap: GAP.outer, rows: [] }
  const open = [outer]
  const arrows: Arrow[] = []
  for (const line of source
    .split('\n')
    .slice(1)
    .map((line) => line.trim())
    .filter(Boolean)) {
    const grid = open.at(-1) ?? outer
    const [, columns] = /^columns (\d+)$/.exec(line) ?? []
    const [, inner, span = '1'] = /^block:(\w+)(?::(\d+))?$/.exec(line) ?? []
    const [, from, to] = /^(\w+) --> (\w+)$/.exec(line) ?? []
    if (columns !== undefined) grid.columns = Number(columns)
    else if (inner !== undefined) open.push(nested(grid, inner, Number(span)))
    else if (line === 'end') open.pop()
    else if (from !== undefined && to !== undefined) arrows.push({ from, to })
    else for (const block of blocksIn(line)) place(grid, block)
  }
  return { grid: outer, arrows }
}

function nested(grid: Grid, id: string, span: number): Grid {
  const content: Grid = { columns: 1, gap: GAP.inner, rows: [] }
  place(grid, { id, span, content })
  return content
}

const blocksIn = (line: string): Block[] =>
  [...line.matchAll(/(\w+)\["([^"]*)"\](?::(\d+))?/g)].map(([, id = '', label = '', span = '1']) => ({
    id,
    span: Number(span),
    content: label.split(/<br\/?>/),
  }))

/** Adds a block to the last row if it fits, otherwise to a new row. */
function place(grid: Grid, block: Block): void {
  const last = grid.rows.at(-1)
  const taken = (last ?? []).reduce((sum, { span }) => sum + span, 0)
  if (last !== undefined && taken + block.span <= grid.columns) last.push(block)
  else grid.rows.push([block])
}

const widthOf = (grid: Grid, span: number, width: number): number =>
  ((width + grid.gap) / grid.columns) * span - grid.gap

function heightOf(grid: Grid, width: number): number {
  const heights = grid.rows.map((row) => rowHeight(grid, row, width))
  return heights.reduce((sum, height) => sum + height, 0) + grid.gap * (heights.length - 1)
}

const rowHeight = (grid: Grid, row: readonly Block[], width: number): number =>
  Math.max(...row.map((block) => blockHeight(block, widthOf(grid, block.span, width))))

const blockHeight = ({ content }: Block, width: number): number =>
  'rows' in content ? heightOf(content, width - 2 * MARGIN) + 2 * MARGIN : content.length * LINE + 14

function draw(grid: Grid, room: Rectangle, places: Map<string, Rectangle>, look: 'box' | 'inner'): string[] {
  let y = room.y
  return grid.rows.flatMap((row) => {
    const height = rowHeight(grid, row, room.width)
    let x = room.x
    const parts = row.flatMap((block) => {
      const own = { x, y, width: widthOf(grid, block.span, room.width), height }
      places.set(block.id, own)
      x += own.width + grid.gap
      return drawBlock(block, own, places, look)
    })
    y += height + grid.gap
    return parts
  })
}

function drawBlock(
  { content }: Block,
  own: Rectangle,
  places: Map<string, Rectangle>,
  look: 'box' | 'inner',
): string[] {
  if ('rows' in content) {
    const room = {
      x: own.x + MARGIN,
      y: own.y + MARGIN,
      width: own.width - 2 * MARGIN,
      height: own.height - 2 * MARGIN,
    }
    return [box(own, look), ...draw(content, room, places, 'inner')]
  }
  const top = own.y + own.height / 2 - ((content.length - 1) * LINE) / 2
  const size = (index: number) => (index === 0 && (look === 'box' || content.length > 1) ? 'label' : 'small')
  const lines = content.map((line, index) =>
    text({ x: own.x + own.width / 2, y: top + index * LINE }, line, size(index), own.width),
  )
  return [box(own, look), ...lines]
}

/** Draws an arrow down to a block of the next row, at the shortest distance. */
function between(from: Rectangle, to: Rectangle): string {
  const inset = 40
  const isLeft = to.x + to.width <= from.x
  const start = { x: isLeft ? from.x + inset : from.x + from.width / 2, y: from.y + from.height }
  const end = { x: isLeft ? to.x + to.width - inset : to.x + to.width / 2, y: to.y }
  return arrow(start, end, 'asks')
}
