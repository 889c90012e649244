import { render } from 'preact'
import { html } from './html.js'
import { followLink } from './router.js'
import { loadSession } from './session.js'
import { Shell } from './shell.js'

const root = document.getElementById('app')
if (root !== null) render(html`<${Shell} />`, root)
document.addEventListener('click', followLink)
loadSession()
