/** The load process. Its parent sends an `Order` and gets a `Result`, as often as it likes; it ends with its parent. */
import type { Order, Result } from './load.ts'
import { performAtRate, performFlatOut } from './paces.ts'

process.on('disconnect', () => process.exit())
process.on('message', async (order: Order) => {
  const began = process.cpuUsage()
  const outcome = await (order.rate === undefined ? performFlatOut(order) : performAtRate(order, order.rate))
  const { user, system } = process.cpuUsage(began)
  process.send?.({ ...outcome, processor: user + system } satisfies Result)
})
