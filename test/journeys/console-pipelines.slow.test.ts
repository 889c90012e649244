import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parsePipelines } from '#gateway/pipelines/pipelines-file.ts'
import { createPipelineRegistry } from '#gateway/pipelines/registry.ts'
import { defaultConfig } from '#kernel/config/config.ts'
import { withoutBrowser } from '#test/browser/chromium.ts'
import {
  expectAccessible,
  expectNoOverflow,
  expectZoomable,
  openConsole,
  signIn,
  tabTo,
  userOf,
} from '#test/console.ts'
import { withClient } from '#test/database.ts'

const HOSTILE = '<img src=/console/stolen onerror="document.title = `run`">\u202efed'
const FILE = `
pipelines:
  totals-by-country:
    description: Totals of orders
    source: { table_name: orders }
    transform: { group_by: country, aggregation_column: amount, column_aliases: { country: nation, amount: total, count: orders } }
    sink: { table_name: totals }
`

if (withoutBrowser !== false) test('pipelines in the console', { skip: withoutBrowser })
else await tests()

async function tests(): Promise<void> {
  const roles = {
    runner: { gateway: { default: ['pipelines.run', 'orders.read', 'totals.write'] } },
    reader: { gateway: { default: ['gateway.read'] } },
  }
  const { t, at, root, enter } = await openConsole({
    pipelines: createPipelineRegistry(
      parsePipelines(defaultConfig(), { name: 'pipelines.yaml', text: FILE }, {}),
    ),
    config: { auth: { admin: { roles } } },
  })
  const rowsOf = (text: string) =>
    withClient(t.clientUrl, async (client) => (await client.query(text)).rows as Record<string, unknown>[])
  await rowsOf(`create table orders (id int primary key, country text, amount numeric, note text);
    create table totals (nation text not null, total numeric, orders int);
    insert into orders values (1, 'DE', 12345678901234567890.10, 'a'), (2, 'DE', 1, 'b'), (3, 'AT', 5, null), (4, null, 7.5, 'c')`)
  const { page } = await enter(root, '/pipelines')
  const definition = page.getByLabel('Definition')
  const press = (name: string) => page.getByRole('button', { name, exact: true }).click()
  const open = async (path: string, heading: string) => {
    await page.goto(at + path)
    await page.getByRole('heading', { level: 1, name: heading }).waitFor()
  }
  const selected = () =>
    page.evaluate(
      `(({ value, selectionStart, selectionEnd }) => value.slice(selectionStart, selectionEnd))(document.querySelector('textarea'))`,
    )

  test('by keyboard alone a named pipeline is tried, its input beside its output, and nothing is stored', async () => {
    await page.getByText('No run yet.').waitFor()
    await expectAccessible(page, 'the list')
    await expectZoomable(page, 'the list')
    await tabTo(page, page.getByRole('link', { name: 'totals-by-country' }))
    await page.keyboard.press('Enter')
    await page.locator('h1:focus', { hasText: 'totals-by-country' }).waitFor()
    assert.match(await definition.inputValue(), /"group_by": "country"/)
    await tabTo(page, page.getByRole('button', { name: 'Dry run' }))
    await page.keyboard.press('Enter')
    const [input, output] = ['Input', 'Output'].map((name) => page.getByRole('region', { name, exact: true }))
    await input?.getByText('12345678901234567890.10').first().waitFor()
    await output?.getByText('12345678901234567891.10').first().waitFor()
    await page.getByText('3 would go to totals').waitFor()
    await expectAccessible(page, 'a dry run')
    await expectZoomable(page, 'a dry run')
    assert.deepEqual(await rowsOf('select * from totals'), [])
  })

  test('a run stores rows, shows the refused ones, and is in the log by its name', async () => {
    await press('Run')
    await page.getByRole('dialog').getByText('Rows of orders on default go into totals on default').waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Run the pipeline' }).click()
    await page.getByText('2 rows are stored').waitFor()
    await page.getByRole('cell', { name: 'not_null_violation' }).waitFor()
    const stored = await rowsOf('select nation, total::text, orders from totals order by 1')
    assert.deepEqual(stored, [
      { nation: 'AT', total: '5', orders: 1 },
      { nation: 'DE', total: '12345678901234567891.10', orders: 2 },
    ])
    await expectAccessible(page, 'a run')
    await t.service.kernel.jobs.drain(t.service.handlers)
    await page.getByRole('link', { name: 'Log of the run' }).click()
    await page.getByText('of totals-by-country').waitFor()
    const steps = page.getByRole('region', { name: 'Steps' })
    assert.deepEqual(await steps.locator('tbody td:first-child').allTextContents(), [
      'source',
      'transform',
      'sink',
    ])
    await expectAccessible(page, 'the log of a run')
    await expectZoomable(page, 'the log of a run')
    await page.getByRole('link', { name: 'Pipelines' }).last().click()
    const run = page.getByRole('region', { name: 'Past runs' }).locator('tbody tr')
    await run.first().waitFor()
    assert.match((await run.first().textContent()) ?? '', /totals-by-countrypublic\.totals on default21/)
  })

  test('what is wrong is marked in the text, which is never lost', async () => {
    await open('/pipelines/edit?from=copy', 'New pipeline')
    await definition.fill('{"source": {"table_name": "orders"}, "sink" {}}')
    await press('Dry run')
    await page.getByText('The definition is not JSON').waitFor()
    assert.equal(await selected(), '{')
    const misspelt = '{"source": {"table_name": "orders", "limt": 1}, "sink": {"table_name": "totals"}}'
    await definition.fill(misspelt)
    await press('Dry run')
    await page.getByText('There is no member source.limt; did you mean limit?').waitFor()
    assert.equal(await selected(), '"limt"')
    await page.route('**/pipelines/simulate', (route) => route.abort())
    await press('Dry run')
    await page.getByText('The service does not answer').waitFor()
    await page.unrouteAll()
    await page.getByRole('navigation', { name: 'Screens' }).getByRole('link', { name: 'Audit' }).click()
    await page.getByRole('heading', { level: 1, name: 'Audit' }).waitFor()
    await page.goBack()
    await page.getByRole('heading', { level: 1, name: 'New pipeline' }).waitFor()
    assert.equal(await definition.inputValue(), misspelt)
    await press('Begin again')
    await page.getByRole('dialog').getByRole('button', { name: 'Begin again' }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    assert.match(await definition.inputValue(), /orders_archive/)
  })

  test('a run can be stopped, and a failure says what was stored', async () => {
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    await page.route('**/pipelines', async (route) => {
      await held
      await route.abort().catch(() => {})
    })
    await press('Run')
    await page.getByRole('dialog').getByRole('button', { name: 'Run the pipeline' }).click()
    await page.getByText('Running …').waitFor()
    await press('Stop')
    await page.getByText('It was stopped').waitFor()
    release()
    await page.unrouteAll()
    await press('Run')
    await page.getByRole('dialog').getByRole('button', { name: 'Run the pipeline' }).click()
    await page.getByText('It failed at the sink, on default').waitFor()
  })

  test('hostile rows are text, and the screens fit a phone', async () => {
    await withClient(t.clientUrl, (client) =>
      client.query('update orders set note = $1 where id = 1', [HOSTILE]),
    )
    await page.setViewportSize({ width: 360, height: 740 })
    await open('/pipelines/edit?from=rename', 'New pipeline')
    await press('Dry run')
    const input = page.getByRole('region', { name: 'Input', exact: true }).last()
    await input.getByText('<img src=').waitFor()
    assert.deepEqual(await input.locator('.code-point').allTextContents(), ['U+202E'])
    assert.equal(await page.locator('main img').count(), 0)
    await expectNoOverflow(page, 'a dry run')
    await expectAccessible(page, 'a dry run at 360 px')
    await open('/pipelines', 'Pipelines')
    await page.getByRole('region', { name: 'Past runs' }).first().waitFor()
    await expectNoOverflow(page, 'the list')
    await page.setViewportSize({ width: 1_280, height: 800 })
  })

  test('what one has typed is not there for whoever signs in next', async () => {
    const { page: shared } = await enter(root, '/pipelines/edit?from=copy')
    const typed = shared.getByLabel('Definition')
    await typed.fill('{"source": "of root"}')
    await shared.getByRole('button', { name: 'Sign out' }).click()
    await signIn(shared, await userOf(t, 'Rob', 'admin'))
    await typed.waitFor()
    assert.match(await typed.inputValue(), /orders_archive/)
  })

  test('a person sees what their rights on clients allow', async () => {
    const { page: running } = await enter(await userOf(t, 'Rut', 'runner'), '/pipelines')
    await running.getByRole('link', { name: 'totals-by-country' }).waitFor()
    assert.equal(await running.getByText('Past runs').count(), 0)
    const { page: reading } = await enter(await userOf(t, 'Rea', 'reader'), '/pipelines')
    await reading.getByRole('heading', { name: 'Nothing here' }).waitFor()
  })
}
