import { createHash, createHmac, pbkdf2, randomBytes } from 'node:crypto'
import { promisify } from 'node:util'

/** PostgreSQL's own count: a start makes a handful of these, 2 ms each. */
const ITERATIONS = 4096

/**
 * What PostgreSQL stores for a password (RFC 5803). Given to it instead of the password, the clear text never
 * reaches the server, its log or pg_stat_activity.
 */
export async function scramVerifier(password: string, salt = randomBytes(16)): Promise<string> {
  // Everything else would need SASLprep (RFC 4013), and every password here is one that we made ourselves.
  if (!/^[\x20-\x7e]+$/.test(password)) throw new TypeError('a database password must be printable ASCII')
  const salted = await promisify(pbkdf2)(password, salt, ITERATIONS, 32, 'sha256')
  const storedKey = createHash('sha256').update(keyOf(salted, 'Client Key')).digest('base64')
  const serverKey = keyOf(salted, 'Server Key').toString('base64')
  return `SCRAM-SHA-256$${ITERATIONS}:${salt.toString('base64')}$${storedKey}:${serverKey}`
}

function keyOf(salted: Buffer, name: string): Buffer {
  return createHmac('sha256', salted).update(name).digest()
}
