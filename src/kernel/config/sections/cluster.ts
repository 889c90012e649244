import { mirrorUrlForm } from '../addresses.ts'
import { list, section } from '../setting.ts'

export const cluster = section('Other installations, for GET /health/cluster.', {
  mirrors: list(
    'Installations that are probed; a user and password are sent as Basic authorization.',
    mirrorUrlForm,
    [],
    { secret: 'password' },
  ),
})
