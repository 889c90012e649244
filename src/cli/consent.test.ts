import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { program } from './program.ts'
import { expectConsent, terminal } from './terminal.ts'

/** A terminal at which someone types this line. Returns what it was asked. */
function terminalWith(context: TestContext, line: string, isTTY = true): string[] {
  const asked: string[] = []
  context.mock.getter(terminal, 'isInteractive', () => isTTY)
  context.mock.getter(terminal, 'input', () => ({ isTTY }))
  context.mock.method(terminal, 'ask', async (question: string) => {
    asked.push(question)
    return line
  })
  return asked
}

test('what cannot be undone needs a yes at a terminal', async (context) => {
  for (const line of ['', 'n', 'no', 'yesterday']) {
    const asked = terminalWith(context, line)
    await assert.rejects(expectConsent('Something is dropped.'), { message: 'Nothing was changed.' })
    assert.deepEqual(asked, ['Something is dropped. Go on? [y/N] '])
    context.mock.restoreAll()
  }
  for (const line of ['y', ' YES ']) {
    terminalWith(context, line)
    await expectConsent('Something is dropped.')
    context.mock.restoreAll()
  }
})

test('a script is not asked', async (context) => {
  const asked = terminalWith(context, 'n', false)
  await expectConsent('Something is dropped.')
  assert.deepEqual(asked, [])
})

test('migrate asks before it takes over an installation, and opens nothing without a yes', async (context) => {
  for (const option of ['--new-secret', '--as-copy']) {
    const asked = terminalWith(context, 'n')
    const gatehouse = await program(['migrate'])
    const run = gatehouse.parseAsync(['node', 'gatehouse', 'migrate', option])
    await assert.rejects(run, { message: 'Nothing was changed.' })
    assert.equal(asked.length, 1, option)
    context.mock.restoreAll()
  }
})
