/** Removes comments from code and empties string literals, except the names of imported modules. */
export function withoutComments(text: string, onRegExp: (literal: string) => void = () => {}): string {
  const token =
    /\/\/[^\n]*|\/\*[\s\S]*?\*\/|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`|\$\{|[{}]|\/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*|[^'"`/${}]+|[\s\S]/y
  let code = ''
  /** For each open brace: whether it belongs to a `${` of a template literal, which continues after it. */
  const braces: boolean[] = []
  for (let at = 0; at < text.length; ) {
    token.lastIndex = at
    let [found = ''] = token.exec(text) ?? []
    const isRegExp = found.length > 1 && found.startsWith('/') && !/^\/[/*]/.test(found)
    // A slash after a value is a division. Anywhere else it begins a regular expression.
    if (isRegExp && /(?:[\w)\]]|\+\+|--)\s*$/.test(code) && !/\b(?:return|typeof|case)\s*$/.test(code))
      found = '/'
    at += found.length
    if (found === '{') braces.push(false)
    if (found === '`' || (found === '}' && braces.pop() === true)) {
      const { end, continues } = templateText(text, at)
      at = end
      if (continues) braces.push(true)
      code += (found === '`' ? '`' : '}') + (continues ? '${' : '`')
    } else if (/^['"]/.test(found)) {
      code += /(?:\bfrom|^import|\bimport\s*\()\s*$/m.test(code.slice(-40)) ? found : "''"
    } else if (isRegExp && found !== '/') {
      onRegExp(found)
      code += '/r/'
    } else if (!/^\/[/*]/.test(found)) code += found
  }
  return code
}

/** Finds the end of a template's text part: after the closing backtick, or after `${`. */
function templateText(text: string, from: number): { end: number; continues: boolean } {
  for (let at = from; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === '`') return { end: at + 1, continues: false }
    else if (text.startsWith('${', at)) return { end: at + 2, continues: true }
  }
  return { end: text.length, continues: false }
}
