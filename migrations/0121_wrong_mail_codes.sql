-- Wrong codes of mails, by the address that they were mailed to, with an account or without (auth.md 11). Each code has few tries; this
-- bounds those at all codes of a day.
create table service.wrong_mail_code (
  address text not null,
  -- 'strangers', 'device:ID', 'session:ID', or 'known': all devices and sessions together.
  counter text not null,
  failures integer not null,
  began_at timestamptz not null,
  constraint wrong_mail_code_key primary key (address, counter)
);
create index wrong_mail_code_by_begin on service.wrong_mail_code (began_at);
