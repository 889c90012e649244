import assert from 'node:assert/strict'
import { test } from 'node:test'
import { colourForm, luminance } from './colours.ts'

test('a colour is stored as six hexadecimal digits', () => {
  const written = {
    '#1D4ED8': '#1d4ed8',
    '#0a7': '#00aa77',
    'rgb(29 78 216)': '#1d4ed8',
    ' RGB(29, 78,216) ': '#1d4ed8',
    'hsl(224 76% 48%)': '#1d4fd7',
    'hsl(0deg, 100%, 50%)': '#ff0000',
    'hsl(360 0% 100%)': '#ffffff',
  }
  for (const [text, kept] of Object.entries(written)) assert.equal(colourForm.parse(text), kept, text)
})

test('text that could be more than a colour in a style sheet is refused', () => {
  for (const text of [
    '',
    'blue; } body { display: none',
    '#12',
    '#12345',
    '#1234567',
    '#ggg',
    'rgb(256 0 0)',
    'rgb(1 2)',
    'rgb(1% 2% 3%)',
    'hsl(361 0% 0%)',
    'hsl(1 101% 0%)',
    'hsl(1 1 1)',
    'rgb(1 2 3)) ; --x: url(//evil.example)',
    'url(//evil.example)',
    'var(--page)',
    '#fff/**/',
  ])
    assert.equal(colourForm.parse(text), undefined, text)
})

test('luminance from black to white is that of WCAG 2', () => {
  assert.equal(luminance('#000000'), 0)
  assert.equal(luminance('#ffffff'), 1)
  assert.ok(Math.abs(luminance('#808080') - 0.2159) < 0.0001)
})
