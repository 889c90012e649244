import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pipelineService } from '#test/pipelines.ts'

const { here, there, sql, run } = await pipelineService({ max_errors: 10 })
await sql(
  here.url,
  `create table asked (id int primary key, state text);
  insert into asked values (1, null), (2, 'PT409'), (3, null), (4, '28000'), (5, null);
  create table ending (id int primary key, state text);
  insert into ending values (1, null), (2, '57P01'), (3, null), (4, 'end')`,
)
await sql(
  there.url,
  `create table stored (id int primary key, state text);
  create function refuse() returns trigger language plpgsql as $$ begin
    if new.state = 'end' then execute 'vacuum'; end if;
    if new.state is not null then raise exception 'no' using errcode = new.state; end if; return new;
  end $$;
  create trigger refuse before insert on stored for each row execute function refuse()`,
)

test('rows that a trigger refuses with any SQLSTATE do not end the run', async () => {
  const { status, body, text } = await run({
    source: { table_name: 'asked' },
    sink: { table_name: 'stored', client: 'there' },
  })
  assert.equal(status, 200, text)
  assert.deepEqual(
    body.errors.map(({ index, code }: { index: number; code: string }) => [index, code]),
    [
      [1, 'rejected_by_database'],
      [3, 'rejected_by_database'],
    ],
  )
  assert.equal(body.rows_inserted, 3)
})

test('rows that a trigger refuses are not in doubt, whatever SQLSTATE it gives them', async () => {
  await sql(there.url, 'truncate stored')
  const { status, body, text } = await run({
    source: { table_name: 'ending' },
    sink: { table_name: 'stored', client: 'there' },
  })
  assert.deepEqual([status, body.code], [502, 'database_error'], text)
  const { rows_inserted, rows_refused, rows_in_doubt } = body.data.details
  assert.deepEqual([rows_inserted, rows_refused, rows_in_doubt], [1, 1, undefined])
})
