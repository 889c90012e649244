import { Type } from 'typebox'
import { webUrlForm } from '../addresses.ts'
import { type Form, textForm } from '../forms.ts'
import { duration, integer, named, section, text } from '../setting.ts'
import { clientNameForm } from './database.ts'

/** Names of buckets as Amazon accepts them, then names between slashes. */
const S3 = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])((?:\/[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}){0,9})\/?$/

/** Undefined when the location is not in object storage. `key` is the prefix of the setting, or the object of a backup. */
export function readS3Location(
  location: string,
): { readonly bucket: string; readonly key: string } | undefined {
  const [, bucket, path = ''] = S3.exec(location) ?? []
  return bucket === undefined ? undefined : { bucket, key: path.slice(1) }
}

const locationForm: Form<string> = {
  name: 'folder or bucket',
  allowed:
    'the path of a folder, or s3://bucket/prefix (bucket: 3 to 63 lower-case letters, digits, - and ., with a letter or digit at both ends; prefix: letters, digits, _ . - between slashes)',
  parse: (text) => {
    const isFolder = /^(?!\w{1,20}:\/\/)[^\p{Cc}]{1,4096}$/u.test(text)
    // The name of a backup follows it.
    const isBucket = [text, `${text.replace(/\/$/, '')}/name`].every(
      (one) => readS3Location(one) !== undefined,
    )
    return isFolder || isBucket ? text : undefined
  },
  write: (value) => value,
}

const scheduleNameForm = textForm(
  'schedule name',
  /^[A-Za-z][A-Za-z0-9_-]{0,62}$/,
  'a letter, then up to 62 letters, digits, _ or -',
)

/** The five fields of cron, each with its smallest and largest value. */
const FIELDS: readonly (readonly [min: number, max: number])[] = [
  [0, 59],
  [0, 23],
  [1, 31],
  [1, 12],
  [0, 7],
]

const cronForm: Form<string> = {
  name: 'cron expression',
  allowed: 'five fields of numbers, like 30 3 * * 1-5 (minute, hour, day, month, day of the week), in UTC',
  parse: (given) => {
    const fields = given.trim().split(/\s+/)
    const isValid = fields.length === 5 && fields.every((field, at) => isField(field, FIELDS[at] ?? [0, 0]))
    return isValid ? fields.join(' ') : undefined
  },
  write: (value) => value,
}

function isField(field: string, [min, max]: readonly [number, number]): boolean {
  return field.split(',').every((part) => {
    const [, from, to = from, step = '1'] =
      /^(?:\*|(\d{1,2})(?:-(\d{1,2}))?)(?:\/(\d{1,2}))?$/.exec(part) ?? []
    if (part === '' || !/^[\d*]/.test(part) || (from === undefined && !part.startsWith('*'))) return false
    const [low, high] = [Number(from ?? min), Number(to ?? max)]
    return low >= min && high <= max && low <= high && Number(step) >= 1
  })
}

const schedule = section('A recurring backup.', {
  client: text('Client whose database is backed up.', { default: 'default' }, clientNameForm),
  cron: text(
    'When, in UTC. A run that could not begin is a failed job.',
    { default: '30 3 * * *' },
    cronForm,
  ),
  keep: integer('Completed backups of this schedule that are kept.', { min: 1, max: 10_000 }, { default: 7 }),
})

/** gateway.md 15. */
export const backups = section('Backups of clients and of the embedded server.', {
  location: Type.Optional(
    text(
      'Where backups are kept: a folder, on another disk than the database and without the secret beside it, or s3://bucket/prefix.',
      { absent: '{server.data_dir}/backups' },
      locationForm,
    ),
  ),
  programs: Type.Optional(
    text('Folder with pg_dump and pg_restore.', { absent: 'the usual folders, then PATH' }),
  ),
  lock_timeout: duration(
    'Longest time that a backup waits for a lock, and a restore for all of its locks, which sessions beside the service may hold.',
    ['60s', '1s', '1h'],
  ),
  s3: section('The S3-compatible server of a location s3://bucket/prefix.', {
    endpoint: Type.Optional(
      text(
        'Its address, like https://s3.eu-central-1.amazonaws.com. The outbound rules do not apply to it.',
        { absent: 'required for s3://' },
        webUrlForm,
      ),
    ),
    region: text('Region that signatures name.', { default: 'us-east-1' }),
    access_key_id: Type.Optional(text('Id of the access key.', { absent: 'required for s3://' })),
    secret_key: Type.Optional(text('Its secret.', { absent: 'required for s3://', secret: 'all' })),
  }),
  schedules: named('Recurring backups by name.', scheduleNameForm, schedule),
})
