import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Page } from 'playwright-core'
import { startServer, startService } from '#test/chaos/services.ts'
import { withClient } from '#test/database.ts'
import { freePort } from '#test/free-port.ts'
import { ADMIN_KEY, actor } from '#test/harness.ts'
import { isAlive } from '#test/processes.ts'
import { TEXT, USER } from '#test/secured-tables.ts'
import { openBrowser, type TestBrowser, withoutBrowser } from './chromium.ts'
import { add, newVisitor, serveExample, shows } from './live-example.ts'

if (withoutBrowser !== false) test('pages with live rows that sleep', { skip: withoutBrowser })
else await tests()

async function tests(): Promise<void> {
  const port = await freePort()
  const app = `http://localhost:${port}`
  const { sql, restart, key, url } = await startExample(app)
  await serveExample(port, { GATEHOUSE_URL: url, PAGES: key, CLIENT: 'app' })
  const [browser, laptop] = [await openBrowser(), await openBrowser()]
  let count = 0

  /** Two users with new cards, one of whom has had no card twice at any time so far. */
  async function visitors(): Promise<readonly [Page, Page]> {
    await sql('truncate card')
    const names = [`ada${++count}`, `bea${count}`] as const
    const [awake, asleep] = [
      await newVisitor(browser, app, names[0]),
      await newVisitor(laptop, app, names[1]),
    ]
    await add(awake, 'one')
    await shows(awake, 'one')
    await shows(asleep, 'one')
    await asleep.evaluate(WATCH)
    return [awake, asleep]
  }

  for (const signal of ['SIGTERM', 'SIGKILL'] as const)
    test(`a page that slept while the service was restarted (${signal}) shows the rows of the other one`, async () => {
      const [awake, asleep] = await visitors()
      const wake = await sleepOf(laptop)
      await sql(
        `insert into card (text) values ('two'), ('gone'); update card set text = 'first' where text = 'one'`,
      )
      await shows(awake, 'first', 'two', 'gone')
      await restart(signal)
      await sql(`delete from card where text = 'gone'; insert into card (text) values ('three')`)
      await shows(awake, 'first', 'two', 'three')
      wake()
      await shows(asleep, 'first', 'two', 'three')
      assert.equal(await asleep.evaluate('window.twice'), 0)
    })

  test('a page that slept without a network shows the rows of the other one', async () => {
    const [awake, asleep] = await visitors()
    await asleep.context().setOffline(true)
    const wake = await sleepOf(laptop)
    await add(awake, 'two')
    await shows(awake, 'one', 'two')
    await add(awake, 'three')
    await shows(awake, 'one', 'two', 'three')
    await sql(`delete from card where text = 'one'; update card set text = 'last' where text = 'three'`)
    await shows(awake, 'two', 'last')
    wake()
    await asleep.context().setOffline(false)
    await shows(asleep, 'two', 'last')
    assert.equal(await asleep.evaluate('window.twice'), 0)
  })
}

/** Counts how often the page has shown a card twice. */
const WATCH = `window.twice = 0
new MutationObserver(() => {
  const texts = [...document.querySelectorAll('#cards span')].map((span) => span.textContent)
  if (new Set(texts).size < texts.length) window.twice++
}).observe(document.getElementById('cards'), { childList: true })`

/** Nothing of the browser runs, as on a closed laptop, until the returned function is called. */
async function sleepOf(browser: TestBrowser): Promise<() => void> {
  const processes = await browser.processes()
  const send = (signal: NodeJS.Signals) => {
    for (const pid of processes.filter(isAlive)) process.kill(pid, signal)
  }
  send('SIGSTOP')
  // Also after a failure, or it could not be closed.
  const wake = () => send('SIGCONT')
  after(wake)
  return wake
}

/** A service in a process of its own, with the table of the example. */
async function startExample(app: string) {
  const server = await startServer({ after })
  const service = await startService({ after }, server, { SERVICE_AUTH__TRUSTED_ORIGINS: app })
  const ask = async (headers: Record<string, string>, method: string, path: string, body: object) => {
    const answer = await actor(service.url, headers).send(method, path, { body })
    assert.ok(answer.status < 300, answer.text)
    return answer.body.data
  }
  const keyWith = async (...rights: string[]): Promise<string> => {
    const asked = { name: 'example', client_name: 'app', rights }
    return (await ask({ apikey: ADMIN_KEY }, 'POST', '/admin/api-keys', asked)).api_key
  }
  const manage = {
    apikey: await keyWith('management.*', 'gateway.*', 'gateway.bypass_row_level_security'),
    'x-service-client': 'app',
  }
  const policies = [{ preset: 'owner' }, { preset: 'signed_in_read' }]
  await ask(manage, 'POST', '/management/tables', { table_name: 'card', columns: [TEXT, USER] })
  await ask(manage, 'PUT', '/management/tables/card/row-level-security', { enabled: true, policies })
  await ask(manage, 'PUT', '/management/tables/card/realtime', { enabled: true })
  return {
    key: await keyWith('card.*'),
    // The page is at localhost, too, so that its cookie is of one site.
    url: service.url.replace('127.0.0.1', 'localhost'),
    sql: (text: string) => withClient(server.url, (client) => client.query(text)),
    restart: service.replace,
  }
}
