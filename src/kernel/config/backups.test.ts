import assert from 'node:assert/strict'
import { test } from 'node:test'
import { complaints, load } from '#test/configuration.ts'
import { maskedConfig } from './config.ts'

const S3 = 'endpoint: https://s3.example.com, access_key_id: backups, secret_key: hidden-of-s3'
const at = (location: string, s3 = S3) =>
  complaints({ yaml: `backups: { location: "${location}", s3: { ${s3} } }` })

test('backups are kept in a folder, or in a bucket of the server that backups.s3 names', () => {
  for (const location of [
    '/mnt/backups',
    'backups',
    's3://backups',
    's3://my.bucket-1/a/b_c/',
    's3://abc/x.y',
  ])
    assert.deepEqual(at(location), [], location)
  for (const location of [
    'https://s3.example.com/backups',
    's3://',
    's3://b',
    's3://UPPER/x',
    's3://backups//x',
    's3://backups/../x',
    's3://backups/a b',
    `s3://backups${'/x'.repeat(9)}`,
    's3://user:password@backups/x',
  ])
    assert.match(
      at(location).join(),
      /must be the path of a folder, or s3:\/\/bucket\/prefix \(bucket: 3 to 63 lower-case letters/,
      location,
    )
  assert.deepEqual(at('s3://backups', 'region: eu-central-1'), [
    'gatehouse.yaml:1 backups.location: a bucket needs backups.s3.endpoint; or name a folder',
    'gatehouse.yaml:1 backups.location: a bucket needs backups.s3.access_key_id; or name a folder',
    'gatehouse.yaml:1 backups.location: a bucket needs backups.s3.secret_key; or name a folder',
  ])
  assert.deepEqual(at('/mnt/backups', 'region: eu-central-1'), [])
})

test('the settings of the bucket come from the environment too, and the secret is not shown', () => {
  const config = load({
    env: {
      SERVICE_BACKUPS__LOCATION: 's3://backups/gatehouse',
      SERVICE_BACKUPS__S3__ENDPOINT: 'https://s3.example.com',
      SERVICE_BACKUPS__S3__REGION: 'eu-central-1',
      SERVICE_BACKUPS__S3__ACCESS_KEY_ID: 'of-backups',
      SERVICE_BACKUPS__S3__SECRET_KEY: 'hidden-of-s3',
    },
  })
  assert.equal(config.backups.s3.secret_key, 'hidden-of-s3')
  const shown = JSON.stringify(maskedConfig(config))
  assert.ok(shown.includes('of-backups') && !shown.includes('hidden-of-s3'), shown)
})
