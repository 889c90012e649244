import type { S3ClientConfig } from '@aws-sdk/client-s3'

/** Every setting that the SDK would otherwise look up in the environment and in files of the operator. */
export const FIXED = {
  // Servers other than Amazon's have no host name for each bucket.
  forcePathStyle: true,
  maxAttempts: 1,
  retryMode: 'standard',
  userAgentAppId: 'gatehouse',
  authSchemePreference: ['sigv4'],
  sigv4aSigningRegionSet: [],
  disableClockSkewCorrection: false,
  defaultsMode: 'standard',
  useArnRegion: false,
  useDualstackEndpoint: false,
  useFipsEndpoint: false,
  disableMultiregionAccessPoints: true,
  disableS3ExpressSessionAuth: true,
  requestChecksumCalculation: 'WHEN_REQUIRED',
  responseChecksumValidation: 'WHEN_REQUIRED',
} as const satisfies S3ClientConfig
