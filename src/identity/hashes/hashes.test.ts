import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isTooCostly } from './hash.ts'
import { parseHash } from './parse-hash.ts'

const tooCostly = (stored: string): boolean | undefined => {
  const hash = parseHash(stored)
  return hash && isTooCostly(hash.cost)
}

const matches = async (stored: string, password: string): Promise<boolean | undefined> =>
  await parseHash(stored)?.matches(password)

/** Each hash matches its password, and not the password with one more character. */
const known = (vectors: readonly (readonly [password: string, stored: string])[]) => async () => {
  for (const [password, stored] of vectors) {
    assert.equal(await matches(stored, password), true, stored)
    assert.equal(await matches(stored, `${password}x`), false, stored)
    assert.equal(tooCostly(stored), false, stored)
  }
}

/** A key given in hex, in the form of PHC. */
const key = (hex: string): string => Buffer.from(hex, 'hex').toString('base64').replace(/=+$/, '')

test(
  'Argon2 in its three variants and both versions: vectors of the reference implementation',
  known([
    ['password', '$argon2i$m=65536,t=2,p=1$c29tZXNhbHQ$9sTbSlTio3Biev89thdrlKKiCaYsjjYVJxGAL3swxpQ'],
    ['password', '$argon2i$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$wWKIMhR9lyDFvRz9YTZweHKfbftvj+qf+YFY4NeBbtA'],
    ['password', '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc'],
    ['password', '$argon2id$v=19$m=256,t=2,p=2$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc'],
  ]),
)

test(
  'PBKDF2 in PHC form: the vectors of RFC 6070 and RFC 7914',
  known([
    // RFC 6070 section 2: SHA-1.
    ['password', `$pbkdf2$1$${key('73616c74')}$${key('0c60c80f961f0e71f3a9b524af6012062fe037a6')}`],
    ['password', `$pbkdf2-sha1$i=4096$${key('73616c74')}$${key('4b007901b765489abead49d926f721d065a429c1')}`],
    // RFC 7914 section 11: SHA-256.
    [
      'passwd',
      `$pbkdf2-sha256$i=1,l=64$${key('73616c74')}$${key(
        '55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc' +
          '49ca9cccf179b645991664b39d77ef317c71b845b1e30bd509112041d3a19783',
      )}`,
    ],
    [
      'Password',
      `$pbkdf2-sha256$i=80000$${key('4e61436c')}$${key(
        '4ddcd8f60b98be21830cee5ef22701f9641a4418d04c0414aeff08876b34ab56' +
          'a1d425a1225833549adb841b51c9b3176a272bdebba1d078478f62b397f33c8d',
      )}`,
    ],
  ]),
)

test(
  'PBKDF2 as passlib and Authelia document it, and as Django stores it',
  known([
    ['password', '$pbkdf2-sha256$6400$.6UI/S.nXIk8jcbdHx3Fhg$98jZicV16ODfEsEZeYPGHU3kbrUrvUEXOPimVSQDD44'],
    [
      'insecure_secret',
      '$pbkdf2-sha512$310000$c8p78n7pUMln0jzvd4aK4Q$JNRBzwAo0ek5qKn50cFzzvE9RXV88h1wJn5KGiHrD0YKtZaR/nCb2CJPOsKaPK0hjf.9yHxzQGZziziccp6Yng',
    ],
    // The vector of RFC 7914 again, since Django's salt is text.
    [
      'passwd',
      'pbkdf2_sha256$1$salt$VawEblbjCJ/sFpHCJUS2BflBhSFt3gRl5oudV8INrLxJypzM8Xm2RZkWZLOdd+8xfHG4RbHjC9UJESBB06GXgw==',
    ],
  ]),
)

test(
  'scrypt in PHC form: the vectors of RFC 7914',
  known([
    [
      'password',
      `$scrypt$ln=10,r=8,p=16$${key('4e61436c')}$${key(
        'fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162' +
          '2eaf30d92e22a3886ff109279d9830dac727afb94a83ee6d8360cbdfa2cc0640',
      )}`,
    ],
    [
      'pleaseletmein',
      `$scrypt$ln=14,r=8,p=1$${key('536f6469756d43686c6f72696465')}$${key(
        '7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2' +
          'd5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887',
      )}`,
    ],
  ]),
)

test(
  'what better-auth 1.2.0, 1.2.12 and 1.7.7 made of a password',
  known([
    [
      'correct horse battery',
      'e9d4c3f6f5380f3c601ccfb5ab7a90e7:9af4dd6d37d394ea615d88484ad9b9007cc350cc31f213673b7b2a5de80eae95f3abd142933fc50807af985f88d9d9d6dda32f3524ce3fdbbdc549c5d7f232c6',
    ],
    [
      'Ａda ﬁlls ½ Ångström'.normalize('NFKC'),
      'a375b8ab851e974ccefdbcfe81f83afb:d5dfd692bc6fa0e81701fed3dd50ea0978c80c55a092c4427422762968d94274de77bf184dd1a089ca501f3a2b976642cc532463dada00a72ef650aea61ad267',
    ],
    [
      'Ａda ﬁlls ½ Ångström'.normalize('NFKC'),
      '240525531f2f2c21059ddb1a2a5e5165:33f49c9cdcca9ab446e69a9155fc2b954956127efd75941a962b1c66b7418e8cab192ff9a06364a06f899b42d612c9a42a6dbe6ae443961de444bbdf8849e746',
    ],
  ]),
)

test(
  'bcrypt: vectors of crypt_blowfish, under each of its three marks',
  known([
    ['U*U', '$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW'],
    ['U*U*', '$2b$05$CCCCCCCCCCCCCCCCCCCCC.VGOzA784oUp/Z0DY336zx7pLYAy0lwK'],
    ['U*U*U', '$2y$05$XXXXXXXXXXXXXXXXXXXXXOAcXxm9kjPGEMsLznoKqmqw7tc8WCx4a'],
    ['', '$2a$05$CCCCCCCCCCCCCCCCCCCCC.7uG0VCzI2bS7j6ymqJi9CdcdxiRTWNy'],
  ]),
)

test('bcrypt reads 72 bytes of a password, and a password with a NUL never matches', async () => {
  const stored = '$2a$05$abcdefghijklmnopqrstuu5s2v8.iXieOjg/.AySBTTZIIVFJeBui'
  const password = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'
  assert.equal(await matches(stored, `${password}chars after 72 are ignored`), true)
  assert.equal(await matches(stored, password), true)
  assert.equal(await matches(stored, password.slice(0, 71)), false)
  assert.equal(await matches('$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW', 'U*U\0'), false)
  assert.equal(await matches('$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW', 'U*U\0x'), false)
})

const SALT = 'c29tZXNhbHQ'
const TAG = 'CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc'

test('a hash that is too costly to check is recognized without checking it', () => {
  for (const stored of [
    `$argon2id$v=19$m=4194304,t=1,p=1$${SALT}$${TAG}`,
    `$argon2id$v=19$m=1048576,t=4,p=1$${SALT}$${TAG}`,
    `$argon2id$v=19$m=262145,t=1,p=1$${SALT}$${TAG}`,
    `$argon2id$v=19$m=65536,t=100,p=1$${SALT}$${TAG}`,
    `$argon2id$v=19$m=8,t=9999999,p=1$${SALT}$${TAG}`,
    '$2b$15$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW',
    `$pbkdf2-sha512$i=100000000$${SALT}$${TAG}`,
    `$pbkdf2-sha256$i=2000000,l=64$${SALT}$${TAG}${TAG}`,
    `pbkdf2_sha256$999999999$salt$${TAG}=`,
    `$scrypt$ln=19,r=8,p=1$${SALT}$${TAG}`,
    `$scrypt$ln=14,r=8,p=32$${SALT}$${TAG}`,
    `$scrypt$ln=12,r=999,p=1$${SALT}$${TAG}`,
    `$scrypt$ln=99,r=999,p=999$${SALT}$${TAG}`,
    `$scrypt$ln=1,r=999,p=999$${SALT}$${TAG}`,
  ]) {
    assert.equal(tooCostly(stored), true, stored)
  }
})

test('the usual parameters of other systems are not too costly', () => {
  for (const stored of [
    // The second recommendation of RFC 9106, and libsodium's "moderate".
    `$argon2id$v=19$m=65536,t=3,p=4$${SALT}$${TAG}`,
    `$argon2id$v=19$m=262144,t=3,p=1$${SALT}$${TAG}`,
    '$2y$12$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW',
    `pbkdf2_sha256$1500000$salt$${TAG}=`,
    `$scrypt$ln=17,r=8,p=1$${SALT}$${TAG}`,
  ]) {
    assert.equal(tooCostly(stored), false, stored)
  }
})

test('other texts and damaged hashes have no form', () => {
  for (const stored of [
    '',
    'correct horse battery',
    '5f4dcc3b5aa765d61d8327deb882cf99', // MD5
    `$argon2id$v=19$m=4,t=2,p=1$${SALT}$${TAG}`,
    `$argon2id$v=19$m=1024,t=0,p=1$${SALT}$${TAG}`,
    `$argon2id$v=19$m=1024,t=2,p=0$${SALT}$${TAG}`,
    `$argon2id$v=18$m=1024,t=2,p=1$${SALT}$${TAG}`,
    `$argon2id$v=19$m=1024,t=2,p=1$c29t$${TAG}`,
    `$argon2id$v=19$m=1024,t=2,p=1$${SALT}$`,
    `$argon2id$v=19$m=1024,t=2,p=1$${SALT}$${TAG}\n`,
    // Not as RFC 4648 and the PHC format have it: the library would throw.
    `$argon2id$v=19$m=1024,t=2,p=1$${SALT.slice(0, -1)}R$${TAG}`,
    `$argon2id$v=19$m=1024,t=2,p=1$${SALT}AA$${TAG}`,
    `$argon2id$v=19$m=1024,t=2,p=1$${SALT}$${TAG.slice(0, -1)}d`,
    `$argon2id$v=19$m=1024,t=2,p=1$${SALT}$${TAG}AA`,
    `$argon2id$v=19$m=01024,t=2,p=1$${SALT}$${TAG}`,
    `$argon2id$v=19$m=1024,t=2,p=01$${SALT}$${TAG}`,
    '$2x$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW',
    '$2a$03$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW',
    '$2a$32$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW',
    '$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyO',
    `$pbkdf2-md5$i=1000$${SALT}$${TAG}`,
    `$pbkdf2-sha256$i=0$${SALT}$${TAG}`,
    `$pbkdf2-sha256$i=1000$${SALT}$AA`,
    'pbkdf2_sha256$1000$salt$',
    `$scrypt$ln=0,r=8,p=1$${SALT}$${TAG}`,
    `$scrypt$ln=14,r=0,p=1$${SALT}$${TAG}`,
    'e9d4c3f6f5380f3c601ccfb5ab7a90e7:9af4dd6d',
  ]) {
    assert.equal(parseHash(stored), undefined, stored)
  }
})
