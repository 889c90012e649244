import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { removeFolder } from '#test/temporary-folder.ts'
import { freePort } from '../free-port.ts'
import { exitOf, hasExited } from '../processes.ts'
import { PROGRAM } from './program.ts'

export type S3Server = {
  /** The parameters of a call of the service. */
  readonly access: {
    readonly endpoint: string
    readonly region: string
    readonly access_key_id: string
    readonly secret_key: string
  }
}

/** Starts versitygw on loopback with buckets in a folder; it is stopped after the file's tests. */
export async function startS3Server({ buckets }: { readonly buckets: readonly string[] }): Promise<S3Server> {
  const folder = await mkdtemp(path.join(tmpdir(), 'gatehouse-s3-'))
  const port = await freePort()
  const [access_key_id, secret_key, region] = ['tests', 'secret of the tests', 'eu-test-1']
  const root = path.join(folder, 'buckets')
  for (const name of ['attributes', 'accounts']) await mkdir(path.join(folder, name))
  for (const bucket of buckets) await mkdir(path.join(root, bucket), { recursive: true })
  const child = spawn(
    PROGRAM,
    [
      ...[
        '--port',
        `127.0.0.1:${port}`,
        '--access',
        access_key_id,
        '--secret',
        secret_key,
        '--region',
        region,
      ],
      // Without accounts in a folder an unknown key is not answered as by S3.
      ...['--iam-dir', path.join(folder, 'accounts')],
      // Folders of temporary files may not have extended attributes.
      ...['posix', '--sidecar', path.join(folder, 'attributes'), root],
    ],
    { cwd: folder, stdio: 'ignore' },
  )
  after(async () => {
    child.kill()
    await exitOf(child)
    await removeFolder(folder)
  })
  await answers(child, port)
  return { access: { endpoint: `http://127.0.0.1:${port}`, region, access_key_id, secret_key } }
}

/** Waits as long as it runs. */
async function answers(child: ChildProcess, port: number): Promise<void> {
  while (!hasExited(child)) {
    const socket = createConnection(port, '127.0.0.1')
    const isOpen = await Promise.race([
      once(socket, 'connect').then(() => true),
      once(socket, 'error').then(() => false),
    ]).catch(() => false)
    socket.destroy()
    if (isOpen) return
    await sleep(50)
  }
  throw new Error('the S3 server has ended')
}
