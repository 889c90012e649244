const { content: service } = document.querySelector('meta[name="service"]')

/** Calls the service with the session cookie. Throws the message of a failure. */
async function call(path, body) {
  const response = await fetch(`${service}/api/auth${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    credentials: 'include',
    ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  })
  const answer = await response.json()
  if (!response.ok) throw new Error(`${answer.code}: ${answer.message}`)
  return answer
}

async function register(name) {
  const options = await call('/passkey/generate-register-options')
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options)
  const credential = await navigator.credentials.create({ publicKey })
  await call('/passkey/verify-registration', { response: credential.toJSON(), name })
}

async function signIn() {
  const options = await call('/passkey/generate-authenticate-options', {})
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options)
  const credential = await navigator.credentials.get({ publicKey })
  const answer = await call('/passkey/verify-authentication', { response: credential.toJSON() })
  if (answer.twoFactorRedirect) throw new Error('This account needs a second factor')
}

async function show() {
  const known = await call('/get-session').catch(() => undefined)
  element('signed-out').hidden = known !== undefined
  element('signed-in').hidden = known === undefined
  if (known === undefined) return
  element('user').textContent = known.user.name
  const passkeys = await call('/passkey/list-user-passkeys')
  element('passkeys').replaceChildren(...passkeys.map(rowOf))
}

/** A form that renames the passkey, and a button that deletes it. */
function rowOf({ id, name, createdAt }) {
  const row = document.createElement('li')
  const form = document.createElement('form')
  const input = document.createElement('input')
  input.value = name ?? ''
  input.required = true
  input.ariaLabel = 'Name of the passkey'
  input.title = `Added ${new Date(createdAt).toLocaleString()}`
  const [rename, remove] = ['Rename', 'Delete'].map((label) => {
    const button = document.createElement('button')
    button.textContent = label
    return button
  })
  remove.type = 'button'
  form.append(input, rename, remove)
  row.append(form)
  on(form, 'submit', () => call('/passkey/update-passkey', { id, name: input.value }), 'Renamed')
  on(remove, 'click', () => call('/passkey/delete-passkey', { id }), 'Deleted')
  return row
}

/** Runs the work for an event, shows the new state, and then the outcome. */
function on(target, event, work, success) {
  target.addEventListener(event, async (occurred) => {
    occurred.preventDefault()
    const status = document.querySelector('[role="status"]')
    status.textContent = '…'
    const outcome = await work(occurred).then(
      () => success,
      (error) => error.message,
    )
    await show()
    status.textContent = outcome
  })
}

const element = (id) => document.getElementById(id)
const fieldsOf = (form) => Object.fromEntries(new FormData(form))

on(element('sign-up'), 'submit', ({ target }) => call('/sign-up/email', fieldsOf(target)), 'Signed up')
on(element('sign-in'), 'click', signIn, 'Signed in')
on(element('sign-out'), 'click', () => call('/sign-out', {}), 'Signed out')
on(element('register'), 'submit', ({ target }) => register(fieldsOf(target).name), 'Added')
await show()
