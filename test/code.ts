/** The text without comments; texts stay where they name an import, and are emptied elsewhere. */
export function codeOf(text: string, onRegExp: (literal: string) => void = () => {}): string {
  const token =
    /\/\/[^\n]*|\/\*[\s\S]*?\*\/|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`|\$\{|[{}]|\/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*|[^'"`/${}]+|[\s\S]/y
  let code = ''
  /** For each open brace: does a template go on behind it? */
  const braces: boolean[] = []
  for (let at = 0; at < text.length; ) {
    token.lastIndex = at
    let [found = ''] = token.exec(text) ?? []
    const isRegExp = found.length > 1 && found.startsWith('/') && !/^\/[/*]/.test(found)
    // A slash behind a value divides; only elsewhere it begins a regular expression.
    if (isRegExp && /(?:[\w)\]]|\+\+|--)\s*$/.test(code) && !/\b(?:return|typeof|case)\s*$/.test(code))
      found = '/'
    at += found.length
    if (found === '{') braces.push(false)
    if (found === '`' || (found === '}' && braces.pop() === true)) {
      const { end, goesOn } = templateText(text, at)
      at = end
      if (goesOn) braces.push(true)
      code += (found === '`' ? '`' : '}') + (goesOn ? '${' : '`')
    } else if (/^['"]/.test(found)) {
      code += /(?:\bfrom|^import|\bimport\s*\()\s*$/m.test(code.slice(-40)) ? found : "''"
    } else if (isRegExp && found !== '/') {
      onRegExp(found)
      code += '/r/'
    } else if (!/^\/[/*]/.test(found)) code += found
  }
  return code
}

/** Where the text part of a template that begins here ends: behind the closing backtick, or behind `${`. */
function templateText(text: string, from: number): { end: number; goesOn: boolean } {
  for (let at = from; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === '`') return { end: at + 1, goesOn: false }
    else if (text.startsWith('${', at)) return { end: at + 2, goesOn: true }
  }
  return { end: text.length, goesOn: false }
}
