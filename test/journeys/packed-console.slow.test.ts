import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdir, readFile, symlink } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { openBrowser, withoutBrowser } from '#test/browser/chromium.ts'
import { untilLoaded } from '#test/browser/loaded.ts'
import { complaintsOf, signIn } from '#test/console.ts'
import { PASSWORD } from '#test/harness.ts'
import { ROOT } from './pages.ts'
import { createAdmin, createTemporaryHome, startProgram } from './program.ts'

const EMAIL = 'root@example.com'

test('from the packed files, in an empty folder, every screen of the console opens without a complaint', {
  skip: withoutBrowser,
}, async (t) => {
  const home = await createTemporaryHome()
  t.after(() => home.remove())
  const root = await unpack(home.folder)
  const data = path.join(home.folder, 'empty')
  await mkdir(data)
  const program = await startProgram(data, {}, [], root)
  t.after(() => program.end('SIGTERM'))
  await createAdmin(data, { email: EMAIL, password: PASSWORD }, root)

  const visit = await (await openBrowser()).visit()
  const { page } = visit
  await page.goto(program.url.replace('127.0.0.1', 'localhost'))
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await signIn(page, { email: EMAIL })
  const links = page.getByRole('navigation', { name: 'Screens' }).getByRole('link')
  const titles = await links.allTextContents()
  assert.deepEqual(titles, await titlesIn(root))
  for (const title of titles) {
    await links.getByText(title, { exact: true }).click()
    await page.getByRole('heading', { name: title, level: 1 }).waitFor()
    await untilLoaded(page)
    assert.equal(await page.getByRole('alert').count(), 0, title)
  }
  assert.deepEqual(complaintsOf(visit), [])
})

/** The program as it would be published. Its dependencies are those of this checkout: an install would fetch the same ones. */
async function unpack(folder: string): Promise<string> {
  const run = (command: string, args: readonly string[], cwd: string): string => {
    const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' })
    assert.equal(status, 0, stderr)
    return stdout
  }
  const packing = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder]
  const [{ filename }] = JSON.parse(run('npm', packing, ROOT)) as [{ filename: string }]
  run('tar', ['-xzf', filename], folder)
  const root = path.join(folder, 'package')
  await symlink(path.join(ROOT, 'node_modules'), path.join(root, 'node_modules'))
  return root
}

async function titlesIn(root: string): Promise<readonly string[]> {
  const text = await readFile(path.join(root, 'src/console/assets/shell.js'), 'utf8')
  return [...text.matchAll(/^ {2}screen\(\s*'[^']+',\s*'([^']+)'/gm)].map(([, title = '']) => title)
}
