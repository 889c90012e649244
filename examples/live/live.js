const meta = (name) => document.querySelector(`meta[name="${name}"]`).content
const [service, client, key] = [meta('service'), meta('client'), meta('key')]
const element = (id) => document.getElementById(id)

/** Calls the service with the session cookie. Throws the message of a failure. */
async function call(path, body, method = body === undefined ? 'GET' : 'POST') {
  const response = await fetch(service + path, {
    method,
    credentials: 'include',
    headers: { 'content-type': 'application/json', apikey: key, 'x-service-client': client },
    ...(body && { body: JSON.stringify(body) }),
  })
  const answer = await response.json()
  if (!response.ok) throw new Error(`${answer.code}: ${answer.message}`)
  return answer
}

const cards = new Map()
let isFresh = true

/** Applies an event of the stream. */
const APPLY = {
  reset: () => {
    isFresh = true
  },
  snapshot: ({ rows }) => {
    if (isFresh) cards.clear()
    isFresh = false
    for (const row of rows) cards.set(row.id, row)
  },
  change: ({ row }) => cards.set(row.id, row),
  leave: ({ key: { id } }) => cards.delete(id),
  ready: () => {},
  end: () => {},
}

function apply({ name, data }) {
  APPLY[name](data)
  element('cards').replaceChildren(
    ...[...cards.values()].sort((one, other) => (one.id < other.id ? -1 : 1)).map(lineOf),
  )
}

function lineOf({ id, text }) {
  const line = document.createElement('li')
  line.append(Object.assign(document.createElement('span'), { textContent: text }))
  const remove = Object.assign(document.createElement('button'), { type: 'button', textContent: 'Delete' })
  const conditions = [{ eq_column: 'id', eq_value: id }]
  act(remove, 'click', () => call('/gateway/delete', { table_name: 'card', conditions }))
  line.append(remove)
  return line
}

/** With HTTP/1.1, a browser has six connections for all its tabs: one tab has the stream, and tells the others. */
const others = new BroadcastChannel('cards')
let isLeading = false
others.addEventListener('message', ({ data }) => {
  if (data.name !== 'asks') apply(data)
  else if (isLeading) {
    others.postMessage({ name: 'reset' })
    others.postMessage({ name: 'snapshot', data: { rows: [...cards.values()] } })
  }
})

function tell(event) {
  apply(event)
  others.postMessage(event)
}

/** Opens the stream by a ticket, since EventSource sends no headers. */
async function follow() {
  const asked = { tables: [{ table_name: 'card' }] }
  const answer = await call('/realtime/tickets', asked).catch((error) => {
    element('status').textContent = error.message
  })
  if (answer === undefined) return void setTimeout(follow, 5_000)
  isFresh = true
  const source = new EventSource(`${service}/realtime?ticket=${answer.data.ticket}`)
  for (const name of Object.keys(APPLY))
    source.addEventListener(name, ({ data }) => tell({ name, data: JSON.parse(data) }))
  source.addEventListener('end', ({ data }) => {
    if (JSON.parse(data).reason === 'shutting_down') return
    source.close()
    void show()
  })
  // The browser tries again by itself, with the id of the last event. A ticket that is refused ends that.
  source.addEventListener('error', () => {
    if (source.readyState === EventSource.CLOSED) setTimeout(follow, 2_000)
  })
}

/** Leads when no other tab does, until this one is closed. */
function lead() {
  void navigator.locks.request('cards', () => {
    isLeading = true
    void follow()
    return new Promise(() => {})
  })
  others.postMessage({ name: 'asks' })
}

let isFollowing = false
async function show() {
  const known = await call('/api/auth/get-session').catch(() => undefined)
  element('signed-out').hidden = known !== undefined
  element('signed-in').hidden = known === undefined
  if (known === undefined) return
  element('user').textContent = known.user.name
  if (!isFollowing) lead()
  isFollowing = true
}

/** Does the work for an event, and shows a failure. */
function act(target, event, work) {
  target.addEventListener(event, async (occurred) => {
    occurred.preventDefault()
    const failure = await work(occurred).then(
      () => '',
      (error) => error.message,
    )
    element('status').textContent = failure
  })
}

const fieldsOf = (form) => Object.fromEntries(new FormData(form))

act(element('sign-up'), 'submit', async ({ target }) => {
  await call('/api/auth/sign-up/email', fieldsOf(target))
  await show()
})
act(element('sign-out'), 'click', async () => {
  await call('/api/auth/sign-out', {})
  location.reload()
})
act(element('add'), 'submit', async ({ target }) => {
  await call('/gateway/insert', { table_name: 'card', insert_body: fieldsOf(target) }, 'PUT')
  target.reset()
})
await show()
