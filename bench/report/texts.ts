/** The parts of the page that hold no figures. */
export const INTRODUCTION = `How fast Gatehouse is, compared with what, and how to measure it on your machine.

<!-- needs: an hour of a quiet machine -->
\`\`\`sh
npm run bench                  # everything, under an hour; after an interruption, what is left
npm run bench -- rows-100      # one scenario; a wrong name lists all
npm run bench -- --quick       # ours and its limit in four scenarios, three minutes
npm run bench -- growth        # what requests cost with a million rows, --rows N or --huge with others; under 20 minutes
npm run bench -- peers         # installs the other products that it compares with
npm run brake                  # processor time of this state against the reference and the last main
node bench/history.ts e4b07b3  # processor time and memory at commits since then
node bench/soak.ts             # a mix of requests at 70 % of the maximum for ten minutes, and the slope of the memory
node bench/notifying.ts        # commits that tell other processes of a change, by number of connections
node bench/rows-to-json.ts     # rows inside the process, against json_agg, and against parsing and stringifying them
node bench/pipelining.ts       # reads by key on shared connections, against a connection each
node bench/sign-in-timing.ts   # whether the time of an answer reveals who has an account
\`\`\`

It starts what it needs. With Debian's package \`postgresql\` it uses that server, by TCP and with its defaults; \`TEST_DATABASE_URL\` names
another one on this machine. \`pgbench\` and \`psql\` of that package are the limits. It needs Linux, because processor times come from \`/proc\`.

[Faults](faults.md) has what happens to requests while parts fail.`

export const METHOD = `## Method

- **One binding target a scenario**, against its limit: the same work with as little as possible around it. Other products are beside it.
  A target is met when the whole 95 % interval lies on its side.
- **Sides work in turns**, at least nine rounds, each beginning with another side, so that the machine's disturbances meet all of them. A ratio is
  taken within a round; the interval is that of the median, by a bootstrap whose seed is in the file.
- **Each run begins with ours against ours**: two processes of the same state. Where that interval leaves 0.95 to 1.05, only processor
  times are published.
- **Processor time** is user and system of every thread and every backend, from \`/proc\`, before and after a turn. It is what survives a shared
  machine. That of the load is not part of the sum.
- **The load** is a process of ours (\`bench/load/\`): everyone who has the repository has the same version of it, and one program measures the
  maximum and the latency. Latency counts from the intended time of sending at a constant rate, and the process says how late it was itself.
- **Answers are compared** value by value with the database before and after each turn. A wrong one voids the turn.
- **Everything that production has is on**: rate limits whose ceilings are out of reach, coherent caches, metrics, request ids, and a webhook
  that matches no event.
- **PostgREST and Hasura are missing**, because no package registry has their servers.`
