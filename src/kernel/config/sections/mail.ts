import { Type } from 'typebox'
import { smtpUrlForm } from '../addresses.ts'
import { textForm } from '../forms.ts'
import { choice, duration, section, text } from '../setting.ts'

const ADDRESS = '[^\\s<>@,;"]+@[^\\s<>@,;"]+'
const mailboxForm = textForm(
  'mailbox',
  new RegExp(`^(${ADDRESS}|[^<>@,;"]+ <${ADDRESS}>|"[^<>"\\\\]+" <${ADDRESS}>)$`),
  'an address like auth@example.com or Example <auth@example.com>',
)

export const mail = section('Mail that the service sends.', {
  transport: choice(
    'outbox writes mails as .eml files below server.data_dir; smtp sends them.',
    ['outbox', 'smtp'],
    {
      default: 'outbox',
    },
  ),
  outbox_keep: duration('Time that a mail stays in the outbox.', ['7d', '1h', '3650d']),
  from: text('Sender.', { default: 'Gatehouse <no-reply@localhost>' }, mailboxForm),
  smtp_url: Type.Optional(
    text('Mail server; required for transport smtp.', { absent: 'none', secret: 'all' }, smtpUrlForm),
  ),
})
