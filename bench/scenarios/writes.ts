import { CONNECTIONS, insertRow, threeOperations, updateRow } from '../loads.ts'
import type { Scenario } from '../scenario.ts'
import { ROWS } from '../service.ts'
import { ourSide, PGBENCH, pgbenchSide } from '../sides.ts'

const KEY = `\\set id random(1, ${ROWS})\n`
const UPDATE = `update bench_rows set note = 'note ' || :id where id = :id returning *;\n`
const INSERT = `insert into bench_inserted (name, email, active, price, meta)
  values ('name ' || :id, 'user' || :id || '@example.com', true, :id, '{"k": 1}') returning *;\n`.replaceAll(
  /\n {2}/g,
  ' ',
)
const READ = 'select * from bench_rows where id = :id;\n'

export const updateByKey: Scenario = {
  title: 'update by key',
  unit: 'requests per second',
  hasLatency: true,
  open: async (bench) => [
    ourSide(bench, updateRow(bench.service)),
    await pgbenchSide(bench, KEY + UPDATE, { connections: CONNECTIONS }),
  ],
}

export const insertOfRow: Scenario = {
  title: 'insert of a row',
  unit: 'requests per second',
  hasLatency: true,
  open: async (bench) => [
    ourSide(bench, insertRow(bench.service)),
    await pgbenchSide(bench, KEY + INSERT, { name: PGBENCH, connections: CONNECTIONS }),
  ],
}

/** An insert, an update and a read, all or nothing. */
export const transactionOfThree: Scenario = {
  title: 'transaction of three operations',
  unit: 'requests per second',
  hasLatency: true,
  open: async (bench) => [
    ourSide(bench, threeOperations(bench.service)),
    await pgbenchSide(bench, `${KEY}begin;\n${INSERT}${UPDATE}${READ}commit;\n`, {
      connections: CONNECTIONS,
    }),
  ],
}
