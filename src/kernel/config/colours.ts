import type { Form } from './forms.ts'

/** Red, green and blue, 0 to 255. */
type Colour = readonly [red: number, green: number, blue: number]

/** A CSS colour of three parts. Kept as #rrggbb, so that no other text can get into a style sheet. */
export const colourForm: Form<string> = {
  name: 'colour',
  allowed: 'a colour like #1d4ed8, #0a7, rgb(29 78 216), hsl(224 76% 48%)',
  parse: (text) => {
    const colour = readColour(text.trim().toLowerCase())
    return colour && `#${colour.map((part) => part.toString(16).padStart(2, '0')).join('')}`
  },
  write: (value) => value,
}

function readColour(text: string): Colour | undefined {
  const [, digits] = /^#([\da-f]{3}|[\da-f]{6})$/.exec(text) ?? []
  if (digits !== undefined) return fromHex(digits)
  // Commas as in CSS 2, or spaces as in CSS Color 4.
  const [, name, one, two, three] =
    /^(rgb|hsl)\(\s*(\d{1,3})(?:deg)?(?:\s+|\s*,\s*)(\d{1,3}%?)(?:\s+|\s*,\s*)(\d{1,3}%?)\s*\)$/.exec(text) ??
    []
  if (one === undefined || two === undefined || three === undefined) return undefined
  return name === 'rgb' ? fromRgb([one, two, three]) : fromHsl(Number(one), two, three)
}

const fromHex = (digits: string): Colour => {
  const width = digits.length / 3
  const part = (index: number) =>
    Number.parseInt(digits.slice(index * width, (index + 1) * width).repeat(3 - width), 16)
  return [part(0), part(1), part(2)]
}

function fromRgb(parts: readonly [string, string, string]): Colour | undefined {
  const [red, green, blue] = parts.map(Number) as [number, number, number] // the same number of parts
  return [red, green, blue].every((part) => part <= 255) ? [red, green, blue] : undefined
}

/** CSS Color 4, section 7.1. */
function fromHsl(hue: number, ...[second, third]: [string, string]): Colour | undefined {
  const [saturation, lightness] = [second, third].map((part) =>
    part.endsWith('%') ? Number(part.slice(0, -1)) / 100 : Number.NaN,
  ) as [number, number] // of two
  if (!(hue <= 360 && saturation <= 1 && lightness <= 1)) return undefined
  const part = (n: number) => {
    const k = (n + hue / 30) % 12
    const a = saturation * Math.min(lightness, 1 - lightness)
    return Math.round(255 * (lightness - a * Math.max(-1, Math.min(k - 3, 9 - k, 1))))
  }
  return [part(0), part(8), part(4)]
}

/** The relative luminance of WCAG 2: 0 for black, 1 for white. */
export function luminance(hex: string): number {
  const [red, green, blue] = fromHex(hex.slice(1)).map((part) => {
    const share = part / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  }) as [number, number, number] // three parts
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}
