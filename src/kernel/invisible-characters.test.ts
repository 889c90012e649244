import assert from 'node:assert/strict'
import { test } from 'node:test'
import { escapeInvisible, escapeInvisibleInLine } from './invisible-characters.ts'
import { createLog } from './log.ts'

const HOSTILE: Readonly<Record<string, string>> = {
  '\u001b[31mred': '\\u001b[31mred',
  'a\u009b2Jb': 'a\\u009b2Jb',
  'over\rwritten': 'over\\u000dwritten',
  'a\u202egnp.exe': 'a\\u202egnp.exe',
  '\u2066a\u2069': '\\u2066a\\u2069',
  'a\u0007\u0008\u007f': 'a\\u0007\\u0008\\u007f',
  'a\u2028b\u200eb': 'a\\u2028b\\u200eb',
  'tag\u{e0041}': 'tag\\udb40\\udc41',
  'lone\ud800': 'lone\\ud800',
}

test('terminal commands, changes of direction and invisible characters are escaped', () => {
  for (const [text, shown] of Object.entries(HOSTILE)) {
    assert.equal(escapeInvisible(text), shown)
    assert.equal(JSON.parse(escapeInvisible(JSON.stringify(text))), text, 'in JSON it means the same')
  }
  for (const text of ['Zoë 山田', 'علی\u200cرضا', '👩\u200d💻 ❤\ufe0f', 'two\nlines\tand a tab'])
    assert.equal(escapeInvisible(text), text)
  assert.equal(escapeInvisibleInLine('a\n\tb'), 'a\\n\\tb')
})

test('the terminal log contains no such characters', () => {
  const lines: string[] = []
  const destination = { write: (line: string) => void lines.push(line) }
  const log = createLog({ level: 'info', format: 'pretty', destination })
  log.info({ event: 'x', table: 'a\u202eb', deep: { list: ['\u009b2J'] } }, 'column \u001b]0;owned\u0007')
  const { table, deep, msg } = JSON.parse(lines.join())
  assert.deepEqual([table, deep.list, msg], ['a\\u202eb', ['\\u009b2J'], 'column \\u001b]0;owned\\u0007'])
})
