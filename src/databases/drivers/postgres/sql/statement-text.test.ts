import assert from 'node:assert/strict'
import { test } from 'node:test'
import { firstWord, splitStatements } from '#databases/drivers/postgres/sql/statement-text.ts'

const cases: readonly (readonly [text: string, count: number])[] = [
  ['select 1', 1],
  ['select 1;', 1],
  ['select 1; select 2', 2],
  [';; select 1 ;; -- end', 1],
  [`select ';', E'\\';', "a;b", $$;$$, $x$;$$;$x$; select 2`, 2],
  ['/* ; /* ; */ ; */ select 1 -- ;\n; select 2', 2],
  ['create rule r as on insert to t do also (delete from a; delete from b); select 1', 2],
  [
    'create function f() returns int begin atomic select 1; select case when true then 2 end; end; select f()',
    2,
  ],
  ['create or replace procedure p() begin atomic select 1; end', 1],
  ['begin; select 1; end', 3],
  ["select 'never closed; select 1", 1],
  ['(select 1); (select 2)', 2],
  ['$1; select 1', 2],
  ['select a$b$c; select 2', 2],
  ['"quoted"; select 1', 2],
]

for (const [text, count] of cases)
  test(`${count} statements: ${text.slice(0, 60)}`, () => assert.equal(splitStatements(text).length, count))

test('the first word may follow comments and parentheses', () => {
  assert.equal(firstWord('/* x /* y */ */ -- z\n (( SELECT 1))'), 'select')
  assert.equal(firstWord(' -- nothing'), '')
  assert.equal(firstWord("'select'"), "'select'")
  assert.equal(firstWord('; select 1'), ';')
})
