import { Type } from 'typebox'
import { type Form, textForm } from '../forms.ts'
import { integer, named, section, text } from '../setting.ts'
import { clientNameForm } from './database.ts'

const folderForm = textForm('folder', /^(?!\w{1,20}:\/\/)[^\0]{1,4096}$/, 'the path of a folder, not a URL')

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
  cron: text('When, in UTC.', { default: '30 3 * * *' }, cronForm),
  keep: integer('Completed backups of this schedule that are kept.', { min: 1, max: 10_000 }, { default: 7 }),
})

/** gateway.md 15. */
export const backups = section('Backups of clients and of the embedded server.', {
  location: Type.Optional(
    text(
      'Folder of the backups. It should be on another disk than the database, without the secret beside it.',
      { absent: '{server.data_dir}/backups' },
      folderForm,
    ),
  ),
  programs: Type.Optional(
    text('Folder with pg_dump and pg_restore.', { absent: 'the usual folders, then PATH' }),
  ),
  schedules: named('Recurring backups by name.', scheduleNameForm, schedule),
})
