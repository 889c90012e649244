/** Takes the pictures of docs/console.md: `PICTURES=1 node test/run.ts test/journeys/console-pictures.slow.test.ts` writes them. */
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { after, test } from 'node:test'
import type { Page } from 'playwright-core'
import { uuidv7 } from '#kernel/random.ts'
import { withoutBrowser } from '#test/browser/chromium.ts'
import { openConsole, userOf } from '#test/console.ts'
import { withClient } from '#test/database.ts'
import { PASSWORD, type TestService } from '#test/harness.ts'
import { ROOT } from './pages.ts'
import { picturedPipelines, picturedPolicies, picturedWebhooks } from './pictured.ts'

const FOLDER = process.env.PICTURES_IN ?? path.join(ROOT, 'docs/pictures/console')
const isWritten = process.env.PICTURES !== undefined

if (withoutBrowser !== false) test('pictures of the console', { skip: withoutBrowser })
else await tests()

const NAMES =
  'Ada Alan Barbara Claude Donald Edsger Frances Grace Hedy Ida Joan Karen Leslie Margaret Niklaus'

const SQL = `-- What an author has written
select author, count(*) as books, sum(pages) as pages, round(avg(price), 2) as price
  from books
 where author is not null and title <> 'Untitled'
 group by author
 order by pages desc`

const writeSql = async (page: Page) => {
  await page.getByRole('textbox', { name: 'SQL' }).focus()
  await page.keyboard.insertText(SQL)
}
const FILE = `id;title;author;pages;price;year
301;Principia Mathematica;Bertrand Russell;1996;120.00;1910
302;"Gödel, Escher, Bach";Douglas Hofstadter;777;24.95;1979
303;The Mythical Man-Month;Frederick Brooks;322;32.50;1975
304;Communicating Sequential Processes;Tony Hoare;256;41.90;1985
`

/** What is done before the picture is taken. */
const ACTS: Readonly<Record<string, (page: Page) => Promise<void>>> = {
  async policies(page) {
    await page.getByLabel('Id or email').fill('ada@example.com')
    await page.getByRole('button', { name: 'See the rows' }).click()
    await page.getByRole('cell', { name: 'Ask Charles about the mill' }).waitFor()
  },
  async import(page) {
    const file = { name: 'books.csv', mimeType: 'text/csv', buffer: Buffer.from(FILE) }
    await page.getByLabel('File').setInputFiles(file)
    await page.getByRole('region', { name: 'First rows' }).waitFor()
  },
  async sql(page) {
    await writeSql(page)
    await page.keyboard.press('ControlOrMeta+Enter')
    await page.getByRole('cell', { name: 'Ada Lovelace' }).waitFor()
  },
  async plan(page) {
    await writeSql(page)
    await page.keyboard.press('Escape')
    await page.getByLabel('Measure (ANALYZE runs the statement)').check()
    await page.getByRole('button', { name: 'Explain' }).click()
    await page.getByText(/execution time/).waitFor()
  },
}

async function tests(): Promise<void> {
  const secured = await picturedPolicies()
  const { t, root, enter } = await openConsole({
    ...picturedPipelines,
    config: {
      clients: { notes: secured.settings },
      backups: { schedules: { nightly: { client: 'default', cron: '30 3 * * *', keep: 14 } } },
    },
    doctor: () => async () => [
      { subject: 'configuration', ok: true, says: 'every setting is valid' },
      {
        subject: 'database',
        ok: true,
        says: 'PostgreSQL 18 answers, and its schema is that of this version',
      },
      {
        subject: 'mail',
        ok: false,
        says: 'Mails lie in data/outbox and reach nobody: set mail.transport to smtp, and mail.smtp_url',
      },
    ],
  })

  async function addMembers(organizationId: string, users: readonly (string | undefined)[]) {
    const { db, now, random } = t.service.kernel
    for (const [index, userId = ''] of users.entries())
      await db
        .insertInto('member')
        .values({
          ...{ id: uuidv7(now(), random), organizationId, userId, createdAt: now() },
          role: index === 0 ? 'admin' : 'member',
        })
        .execute()
  }

  after(async () => {
    await t.stop()
    await secured.drop()
  })

  test('each screen is pictured, light and dark', async () => {
    const people = []
    for (const name of NAMES.split(' '))
      people.push(await userOf(t, name, name === 'Grace' ? 'admin' : 'user'))
    await root.post('/api/auth/admin/ban-user', { userId: people[3]?.id, banReason: 'spam' })
    for (const { email } of people.slice(4, 9))
      await t.anon.post('/api/auth/sign-in/email', { email, password: PASSWORD })
    await t.anon.post('/api/auth/sign-in/email', { email: root.email, password: 'wrong password' })
    await withClient(t.clientUrl, (client) =>
      client.query(`create table books (id int primary key, title text, author text, pages int, price numeric, added_at timestamptz);
        create table authors (id int primary key, name text);
        insert into books select n, (array['Notes on the Analytical Engine', 'The Art of Computer Programming', 'A Discipline of Programming', 'Untitled'])[1 + n % 4],
          (array['Ada Lovelace', 'Donald Knuth', 'Edsger Dijkstra', null])[1 + n % 4], 60 + n * 37 % 900, (10 + n * 7 % 60) + 0.90, '2026-01-01'::timestamptz + n * interval '31 hours' from generate_series(1, 240) n`),
    )
    await t.anon.post('/api/auth/forget-password', { email: people[2]?.email })
    await t.mails()
    await addBackups(t)
    const key = await t.key(['*'])
    for (const [table, operator] of [
      ['books', 'gt'],
      ['books', 'eq'],
      ['authors', 'eq'],
    ] as const)
      for (let count = 0; count < 20; count++)
        await key.post('/gateway/fetch', {
          table_name: table,
          conditions: [{ column: 'id', operator, value: 3 }],
        })
    const made = []
    for (const [name, rights] of Object.entries({
      shop: ['books.*', 'authors.read'],
      reporting: ['books.read', 'gateway.query.read'],
      'nightly export': ['*.read', 'books.write', 'pipelines.run'],
    }))
      made.push(await t.admin.post('/admin/api-keys', { name, client_name: 'default', rights }))
    for (const [route_key, allowed_ops, table_name] of [
      ['reviews', ['fetch'], 'books'],
      ['new-reviews', ['insert'], 'books'],
      ['live', ['fetch'], 'authors'],
    ])
      await t.admin.post('/admin/public-routes', {
        ...{ route_key, client_name: 'default', allowed_ops, table_name, requires_key: route_key === 'live' },
        ...{ columns: ['id', 'title'], conditions: [{ column: 'pages', operator: 'gt', value: 10 }] },
      })
    const webhooks = await picturedWebhooks(t)
    const [ada, alan, ...others] = people
    await secured.fill(t, root, ada?.id ?? '')
    const { body: organization } = await root.post('/api/auth/organization/create', {
      ...{ name: 'Analytical Engines', slug: 'analytical-engines', userId: ada?.id },
      ...{ metadata: { plan: 'pro', seats: 25 }, keepCurrentActiveOrganization: true },
    })
    await addMembers(organization.id, [alan?.id, ...others.slice(0, 4).map(({ id }) => id)])
    for (const { email } of others.slice(4, 6))
      await root.post('/api/auth/admin/invite-member', {
        organizationId: organization.id,
        email,
        role: 'member',
      })
    for (const [index, name] of ['Bletchley', 'Harvard Mark I', 'Univac', 'Whirlwind'].entries())
      await root.post('/api/auth/organization/create', {
        ...{ name, slug: name.toLowerCase().replaceAll(' ', '-'), userId: others[index]?.id },
        keepCurrentActiveOrganization: true,
      })
    const screens = {
      home: '',
      users: '/users?sort=name&dir=asc',
      user: `/users/${people[4]?.id}`,
      organizations: '/organizations',
      organization: `/organizations/${organization.id}`,
      data: '/data?table=books&sort=pages&dir=desc',
      structure: '/data?table=books&view=structure',
      policies: '/data?client=notes&table=notes&view=policies',
      import: '/data?table=books&view=import',
      pipeline: {
        path: '/pipelines/edit?from=named:pages-by-author',
        button: 'Dry run',
        until: 'would go to totals',
      },
      ...webhooks,
      received: `/webhooks/received/${await receivedTest(t)}`,
      api: '/api/fetchRows',
      keys: '/keys?sort=name&dir=asc',
      key: `/keys/${made.at(-1)?.body.data.record.id}`,
      'public-routes': '/public-routes',
      'public-route': '/public-routes/reviews',
      sql: '/sql',
      plan: '/sql',
      backups: '/backups',
      mail: '/mail',
      audit: '/audit',
      settings: '/settings',
    }
    if (isWritten) await mkdir(FOLDER, { recursive: true })
    for (const [kind, size] of [
      ['', { width: 1_280, height: 800 }],
      ['-narrow', { width: 360, height: 740 }],
    ] as const)
      for (const colorScheme of ['light', 'dark'] as const) {
        if (kind !== '' && process.env.PICTURES_IN === undefined) continue
        const { page } = await enter(root, '', { colorScheme, viewport: size })
        for (const [name, screen] of Object.entries(screens)) {
          const { path: address, ...more } = typeof screen === 'string' ? { path: screen } : screen
          await page.goto(`${t.service.kernel.publicUrl()}/console${address}`)
          await page.getByRole('heading', { level: 1 }).waitFor()
          if ('button' in more) {
            await page.getByRole('button', { name: more.button }).click()
            await page.getByText(more.until).waitFor()
          }
          await page.waitForLoadState('networkidle')
          await ACTS[name]?.(page)
          const picture = await page.screenshot()
          if (isWritten) await writeFile(path.join(FOLDER, `${name}${kind}.${colorScheme}.png`), picture)
        }
      }
  })
}

/** A test of a webhook to the test receiver. */
async function receivedTest({ admin, anon }: TestService): Promise<string> {
  const headers = { 'x-service-client': 'default' }
  const { url } = (await anon.get('/dev/webhooks')).body
  const webhook = { route_key: 'gateway_insert', url, is_active: false }
  const { id } = (await admin.post('/admin/webhooks', webhook, { headers })).body.data
  await admin.post(`/admin/webhooks/${id}/test`, {}, { headers })
  return (await anon.get('/dev/webhooks')).body.webhooks[0].id
}

/** As a server of one's own has them. */
async function addBackups({ service: { kernel } }: TestService): Promise<void> {
  const { id: installationId } = await kernel.db
    .selectFrom('installation')
    .select('id')
    .executeTakeFirstOrThrow()
  const jobs = [
    { status: 'completed', label: 'nightly', hours: 29, sizeBytes: '48210311' },
    { status: 'failed', label: 'nightly', hours: 5, errorMessage: 'The disk of backups.location is full.' },
    { status: 'running', label: 'before the move', hours: 0, progressPct: 42, progressStage: 'dumping' },
  ]
  for (const { hours, ...job } of jobs) {
    const at = new Date(kernel.now().getTime() - hours * 3_600_000)
    const id = uuidv7(at, kernel.random)
    const location = job.status === 'completed' ? `/mnt/backups/default-${id}.dump` : null
    await kernel.db
      .insertInto('backupJob')
      .values({
        ...job,
        id,
        location,
        installationId,
        jobType: 'backup',
        clientName: 'default',
        format: 'dump',
        createdAt: at,
        updatedAt: at,
        leaseUntil: new Date(at.getTime() + 3_600_000),
        completedAt: job.status === 'running' ? null : at,
      })
      .execute()
  }
}
