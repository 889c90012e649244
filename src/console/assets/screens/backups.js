import { useEffect, useState } from 'preact/hooks'
import { call } from '../api.js'
import { Link, Mark, Pager, Panel, Pending, Table, Title, take } from '../controls.js'
import { useLoad } from '../hooks.js'
import { html } from '../html.js'
import { goWith } from '../router.js'
import { may } from '../session.js'
import { bytes, Time, Value } from '../values.js'
import { Acts, isActive } from './backups/acts.js'
import { BackUpForm } from './backups/forms.js'

/** @typedef {{ id: string, job_type: 'backup' | 'restore', status: string, client_name: string, format: 'dump' | 'archive', label: string | null, location: string | null, size_bytes: number | null, progress_pct: number, progress_stage: string | null, error_message: string | null, created_at: string, completed_at: string | null }} Job */

const LIMIT = 50
/** Milliseconds between looks at a job that waits or runs. */
const LOOK_EVERY = 1_000
const STATUSES = ['pending', 'running', 'completed', 'failed', 'cancelled', 'foreign']
/** @type {Readonly<Record<string, 'good' | 'warn' | 'bad' | 'plain'>>} */
const TONES = { completed: 'good', running: 'warn', pending: 'warn', failed: 'bad' }

/** Backups and restores, newest first. @param {import('../router.js').ViewProps} props */
export function View({ caller, query }) {
  const { client = '', status = '', type = '' } = query
  const offset = Math.max(0, Number(query.offset ?? 0) || 0)
  const asked = { client_name: client, status, job_type: type, limit: LIMIT, offset }
  const { data, failure, isLoading, reload } = useLoad(
    (signal) => call('/admin/backups/jobs', { query: asked, signal }),
    [JSON.stringify(asked)],
  )
  const [isMaking, setMaking] = useState(false)
  /** @type {readonly Job[]} */
  const jobs = data?.data.jobs ?? []
  const isWorking = jobs.some(isActive)
  useEffect(() => {
    if (!isWorking || isLoading) return
    const waiting = setTimeout(reload, LOOK_EVERY)
    return () => clearTimeout(waiting)
  }, [isWorking, isLoading])
  const filter = (/** @type {string} */ name) => take((value) => goWith({ [name]: value, offset: undefined }))
  return html`<${Title} title="Backups">
      <button type="button" class="primary" onClick=${() => setMaking(true)}>Back up</button>
    <//>
    <div class="tools" role="search">
      <label>Client <input type="search" value=${client} onChange=${filter('client')} placeholder="any" /></label>
      <label>Kind <select value=${type} onChange=${filter('type')}>
        <option value="">All</option><option value="backup">Backups</option><option value="restore">Restores</option>
      </select></label>
      <label>State <select value=${status} onChange=${filter('status')}>
        <option value="">All</option>${STATUSES.map((name) => html`<option value=${name}>${name}</option>`)}
      </select></label>
    </div>
    <${Pending} of="the backups" data=${data} failure=${failure} again=${reload} />
    ${
      data !== undefined &&
      html`<${Table} label="Backups" columns=${columnsFor(reload)} rows=${jobs} keyOf=${idOf}
          empty=${client + status + type === '' ? 'No backup yet.' : 'No backup matches.'} />
        <${Pager} shown=${jobs.length} offset=${offset} limit=${LIMIT} total=${data.data.total} />`
    }
    ${may(caller, ['operator:settings']) && html`<${Schedules} />`}
    ${isMaking && html`<${BackUpForm} caller=${caller} onClose=${() => setMaking(false)} onDone=${reload} />`}`
}

/** @param {Job} job */
const idOf = ({ id }) => id

/** @param {() => void} reload @returns {readonly import('../controls.js').Column<Job>[]} */
const columnsFor = (reload) => [
  { name: 'created_at', title: 'Begun', cell: ({ created_at }) => html`<${Time} at=${created_at} />` },
  {
    name: 'job_type',
    title: 'Kind',
    cell: ({ job_type, format, label }) =>
      html`${job_type} <span class="soft">${format}</span>${label !== null && html`<br /><span class="soft backup-label"><${Value} value=${label} most=${80} /></span>`}`,
  },
  {
    name: 'client_name',
    title: 'Client',
    cell: ({ client_name }) => html`<${Value} value=${client_name} />`,
  },
  { name: 'status', title: 'State', cell: (job) => html`<${State} job=${job} />` },
  {
    name: 'size_bytes',
    title: 'Size',
    isNumber: true,
    cell: ({ size_bytes }) => size_bytes !== null && bytes(size_bytes),
  },
  {
    name: 'location',
    title: 'File',
    cell: ({ location }) =>
      location !== null && html`<span class="fine"><${Value} value=${location} /></span>`,
  },
  {
    name: 'acts',
    title: html`<span class="hidden">Act</span>`,
    cell: (job) => html`<${Acts} job=${job} reload=${reload} />`,
  },
]

/** @param {{ job: Job }} props */
function State({ job }) {
  const { status, progress_pct, progress_stage, error_message } = job
  return html`<${Mark} tone=${TONES[status]}>${status}<//>
    ${
      isActive(job) &&
      html`<br /><progress max="100" value=${progress_pct} aria-label=${`Progress of ${job.job_type}`}></progress>${' '}<span class="soft">${progress_pct} %${progress_stage !== null && html` · <${Value} value=${progress_stage} />`}</span>`
    }
    ${error_message !== null && html`<br /><${Value} value=${error_message} most=${1_000} />`}`
}

/** @typedef {{ setting: string, value: string | null, default: string | null, absent: string | null, source: string }} Setting */

/** What is configured. It is changed where it is written, and holds from the next start. */
function Schedules() {
  const { data, failure, reload } = useLoad((signal) => call('/admin/settings', { signal }), [])
  /** @type {readonly Setting[]} */
  const settings = data?.data.settings ?? []
  const location = settings.find(({ setting }) => setting === 'backups.location')
  const rows = schedulesIn(settings)
  return html`<${Panel} title="Schedules" actions=${html`<${Link} to="/settings" query=${{ search: 'backups.' }}>All settings<//>`}>
    <${Pending} of="the schedules" data=${data} failure=${failure} again=${reload} />
    ${data !== undefined && html`<${Table} label="Schedules that are configured" columns=${SCHEDULE_COLUMNS} rows=${rows} keyOf=${nameOf} empty=${html`None: <code>backups.schedules.NAME</code> in the file of the configuration makes backups by themselves.`} />`}
    ${location !== undefined && html`<p class="fine">Files go to <code><${Value} value=${location.value ?? location.default ?? location.absent} /></code> (<code>backups.location</code>, from ${location.source}).</p>`}
  <//>`
}

/** @typedef {Record<string, string> & { name: string, source: string }} Schedule */

/** @type {readonly import('../controls.js').Column<Schedule>[]} */
const SCHEDULE_COLUMNS = [
  { name: 'name', title: 'Name', cell: ({ name }) => html`<code>${name}</code>` },
  { name: 'client', title: 'Client', cell: ({ client }) => html`<${Value} value=${client} />` },
  { name: 'cron', title: 'When, in UTC', cell: ({ cron }) => html`<code>${cron}</code>` },
  { name: 'keep', title: 'Keeps', cell: ({ keep }) => html`${keep} of them` },
  { name: 'source', title: 'From', cell: ({ source }) => html`<${Mark}>${source}<//>` },
]

/** @param {{ name: string }} schedule */
const nameOf = ({ name }) => name

/** `backups.schedules.NAME.cron` and the like, as one row each. @param {readonly Setting[]} settings @returns {readonly Schedule[]} */
function schedulesIn(settings) {
  /** @type {Map<string, Schedule>} */
  const found = new Map()
  for (const { setting, value, default: usual, source } of settings) {
    const [, name, field] = /^backups\.schedules\.([^.]+)\.(\w+)$/.exec(setting) ?? []
    if (name === undefined || field === undefined || name === 'NAME') continue
    const before = found.get(name) ?? { name, source: 'default' }
    const from = before.source === 'default' ? source : before.source
    found.set(name, { ...before, [field]: value ?? usual ?? '', source: from })
  }
  return [...found.values()]
}
