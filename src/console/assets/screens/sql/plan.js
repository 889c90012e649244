import { Panel } from '../../controls.js'
import { html } from '../../html.js'
import { counted, duration, textOf, Value } from '../../values.js'

/**
 * @typedef {Readonly<Record<string, unknown>> & { 'Node Type': string, Plans?: readonly PlanNode[] }} PlanNode
 * @typedef {Readonly<Record<string, unknown>> & { Plan: PlanNode }} Explained
 */

/** Every number of a plan, also one that was kept as its text. @param {unknown} value */
const numberOf = (value) => (value === undefined ? undefined : Number(textOf(value)))

/** What a step reads, in the order in which one looks for it. */
const SUBJECT = ['Relation Name', 'CTE Name', 'Function Name', 'Subplan Name', 'Index Name']
/** What a step does with the rows. */
const DETAILS = [
  ...['Operation', 'Join Type', 'Strategy', 'Index Cond', 'Recheck Cond', 'Hash Cond', 'Merge Cond', 'Join Filter', 'Filter'],
  ...['Rows Removed by Filter', 'Rows Removed by Join Filter', 'Rows Removed by Index Recheck', 'Sort Key', 'Group Key'],
  ...['Sort Method', 'Sort Space Used', 'Hash Batches', 'Peak Memory Usage', 'Heap Fetches', 'Workers Planned'],
  ...['Workers Launched', 'Shared Hit Blocks', 'Shared Read Blocks', 'Temp Read Blocks', 'Temp Written Blocks'],
] // biome-ignore format: lists

/** The plan of a statement, as a tree. @param {{ planned: import('./run.js').Planned }} props */
export function Plan({ planned: { plan, isMeasured } }) {
  const { Plan: root } = plan
  const whole = weightOf(root, isMeasured)
  const facts = ['Planning Time', 'Execution Time'].flatMap((name) => {
    const time = numberOf(plan[name])
    return time === undefined ? [] : [`${name.toLowerCase()} ${duration(time)}`]
  })
  const note = isMeasured ? facts.join(' · ') : 'estimates; nothing was run'
  return html`<${Panel} title="Plan" note=${html`<span role="status">${note}</span>`}>
    <ul class="plan"><${Step} node=${root} whole=${whole} isMeasured=${isMeasured} /></ul>
    <details><summary>As JSON</summary><pre tabindex="0"><${Value} value=${JSON.stringify(plan, undefined, 1)} most=${100_000} /></pre></details>
  <//>`
}

/** @param {{ node: PlanNode, whole: number, isMeasured: boolean }} props */
function Step({ node, whole, isMeasured }) {
  const children = node.Plans ?? []
  const below = children.reduce((sum, child) => sum + weightOf(child, isMeasured), 0)
  const share = whole === 0 ? 0 : Math.max(0, weightOf(node, isMeasured) - below) / whole
  const subject = SUBJECT.flatMap((name) => (node[name] === undefined ? [] : [textOf(node[name])]))
  const alias =
    node.Alias !== undefined && !subject.includes(textOf(node.Alias)) ? textOf(node.Alias) : undefined
  const details = DETAILS.filter((name) => isTelling(node[name]))
  return html`<li><details open>
    <summary><strong>${textOf(node['Node Type'])}</strong>
      ${subject.length > 0 && html`<span>${subject.map((name, index) => html`${index > 0 && ' by '}<${Value} value=${name} />`)}${alias !== undefined && html` <span class="soft">as</span> <${Value} value=${alias} />`}</span>`}
      <span class="soft">${rowsOf(node, isMeasured)}</span>
      <meter min="0" max="1" high="0.5" low="0.2" optimum="0" value=${share}
        aria-label=${`Share of the whole ${isMeasured ? 'time' : 'cost'}`}></meter>
      <span class="soft">${Math.round(share * 100)} %</span></summary>
    ${details.length > 0 && html`<dl>${details.map((name) => html`<div><dt>${name}</dt><dd><${Value} value=${saidOf(name, node[name])} /></dd></div>`)}</dl>`}
    ${children.length > 0 && html`<ul>${children.map((child) => html`<${Step} node=${child} whole=${whole} isMeasured=${isMeasured} />`)}</ul>`}
  </details></li>`
}

/** @param {unknown} value */
const isTelling = (value) => value !== undefined && numberOf(value) !== 0

/** @param {string} name @param {unknown} value */
function saidOf(name, value) {
  const text = Array.isArray(value) ? value.map(textOf).join(', ') : textOf(value)
  return IN_KILOBYTES.includes(name) ? `${text} kB` : text
}
const IN_KILOBYTES = ['Sort Space Used', 'Peak Memory Usage']

/** Milliseconds over all loops, or the estimated cost: with what is below it. @param {PlanNode} node @param {boolean} isMeasured */
function weightOf(node, isMeasured) {
  if (!isMeasured) return numberOf(node['Total Cost']) ?? 0
  return (numberOf(node['Actual Total Time']) ?? 0) * (numberOf(node['Actual Loops']) ?? 1)
}

/** @param {PlanNode} node @param {boolean} isMeasured */
function rowsOf(node, isMeasured) {
  const guessed = numberOf(node['Plan Rows']) ?? 0
  if (!isMeasured) return `~${counted(guessed)} rows · cost ${textOf(node['Total Cost'])}`
  const loops = numberOf(node['Actual Loops']) ?? 1
  if (loops === 0) return 'never run'
  const found = Math.round((numberOf(node['Actual Rows']) ?? 0) * loops)
  const times = loops > 1 ? ` in ${counted(loops)} runs` : ''
  return `${counted(found)} rows${times}, ~${counted(guessed * loops)} expected · ${duration(weightOf(node, true))}`
}
