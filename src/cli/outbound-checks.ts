import type { Config } from '#kernel/config/config.ts'
import { createAddressPolicy } from '#kernel/http/outbound/address-policy.ts'
import type { Finding } from './finding.ts'

/** Metadata of a machine in most clouds, with its credentials. */
const METADATA_SERVICE = '169.254.169.254'

/** The addresses that requests for callers may reach: webhooks, storage, `x-supabase-url`, identity providers. */
export function outboundFinding({ outbound }: Pick<Config, 'outbound'>): Finding {
  const { allow_http: allowsHttp, allow_networks: networks } = outbound
  const schemes = allowsHttp ? 'http and https' : 'https'
  const reach = networks.length === 0 ? 'public addresses' : `public addresses and ${networks.join(', ')}`
  const says = `requests for callers go by ${schemes} to ${reach}`
  if (!createAddressPolicy(networks)(METADATA_SERVICE)) return { subject: 'outbound', ok: true, says }
  return {
    subject: 'outbound',
    ok: false,
    says: `${says}, which includes the metadata service ${METADATA_SERVICE}: narrow outbound.allow_networks`,
  }
}
