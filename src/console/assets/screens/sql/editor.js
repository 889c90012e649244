import { acceptCompletion, autocompletion, closeCompletion, completionKeymap } from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { PostgreSQL, sql } from '@codemirror/lang-sql'
import { bracketMatching, HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import { EditorState, Prec, StateEffect, StateField } from '@codemirror/state'
import {
  Decoration,
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightSpecialChars,
  keymap,
  lineNumbers,
  placeholder,
} from '@codemirror/view'
import { tags } from '@lezer/highlight'

/**
 * @typedef {{ text: string, from: number }} Part a part of the text, and where it begins
 * @typedef {object} Editor
 * @property {() => string} text
 * @property {() => Part} chosen what is selected, or all of it
 * @property {(text: string) => void} replace one undoes it as one change
 * @property {(at: number | undefined) => void} mark the word there as wrong
 * @property {(at: number) => void} goTo
 * @property {(at: number) => { line: number, column: number }} placeOf
 * @property {() => void} end
 */

/**
 * An editor in a shadow root: CodeMirror's styles are then sheets that scripts adopt, which the policy of the page allows, and no `<style>`.
 * @param {HTMLElement} host
 * @param {{ text: string, typed: Part & { to: number }, hadFocus: boolean, onRun: () => void, onChange: (text: string) => void, offers: import('@codemirror/autocomplete').CompletionSource }} how
 * `typed`: what has been made of `text` and selected before, which one can undo. `hadFocus`: where that was done.
 * @returns {Editor}
 */
export function createEditor(host, { text, typed, hadFocus, onRun, onChange, offers }) {
  const root = host.shadowRoot ?? host.attachShadow({ mode: 'open' })
  const run = () => {
    closeCompletion(view)
    onRun()
    return true
  }
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: text,
      extensions: [
        // Before the keys of the editor, where Mod-Enter adds a line.
        Prec.highest(keymap.of([{ key: 'Mod-Enter', run }])),
        // Tab takes an offer, and otherwise leaves the editor.
        keymap.of([
          { key: 'Tab', run: acceptCompletion },
          ...completionKeymap,
          ...historyKeymap,
          ...defaultKeymap,
        ]),
        ...[history(), lineNumbers(), drawSelection(), highlightActiveLine(), bracketMatching()],
        highlightSpecialChars({ specialChars: INVISIBLE }),
        ...[EditorState.allowMultipleSelections.of(true), EditorView.lineWrapping],
        placeholder('select …'),
        EditorView.contentAttributes.of({ 'aria-label': 'SQL', spellcheck: 'false' }),
        EditorView.domEventHandlers({ beforeinput: replaceHere }),
        EditorView.updateListener.of(({ docChanged, state }) => {
          if (docChanged) onChange(state.doc.toString())
        }),
        // So few that nothing is to be scrolled: the keys turn the page.
        autocompletion({ icons: false, maxRenderedOptions: 12 }),
        sql({ dialect: PostgreSQL }),
        PostgreSQL.language.data.of({ autocomplete: offers }),
        syntaxHighlighting(COLOURS),
        ...[wrong, THEME],
      ],
    }),
  })
  const isTyped = typed.text !== view.state.doc.toString()
  view.dispatch({
    ...(isTyped && { changes: { from: 0, to: view.state.doc.length, insert: typed.text } }),
    selection: { anchor: typed.from, head: typed.to },
  })
  if (hadFocus) view.focus()
  return {
    text: () => view.state.doc.toString(),
    chosen() {
      const { from, to, empty } = view.state.selection.main
      return empty
        ? { text: view.state.doc.toString(), from: 0 }
        : { text: view.state.sliceDoc(from, to), from }
    },
    replace: (next) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } }),
    mark(at) {
      if (at === undefined) return view.dispatch({ effects: setWrong.of(undefined) })
      const { from, to } = view.state.wordAt(at) ?? { from: at, to: Math.min(at + 1, view.state.doc.length) }
      view.dispatch({
        effects: [setWrong.of(from === to ? undefined : { from, to }), EditorView.scrollIntoView(from)],
      })
    },
    goTo(at) {
      view.dispatch({ selection: { anchor: at }, scrollIntoView: true })
      view.focus()
    },
    placeOf(at) {
      const { number, from } = view.state.doc.lineAt(Math.min(at, view.state.doc.length))
      return { line: number, column: at - from + 1 }
    },
    end: () => view.destroy(),
  }
}

/**
 * Text in place of a selection. The browser would keep the colour of what it replaces by a style attribute, which the policy refuses and reports.
 * @param {InputEvent} event
 * @param {EditorView} view
 */
function replaceHere(event, view) {
  const { state, composing } = view
  if (event.inputType !== 'insertText' || event.data === null || composing || state.selection.main.empty)
    return false
  view.dispatch(state.replaceSelection(event.data), { userEvent: 'input.type', scrollIntoView: true })
  event.preventDefault()
  return true
}

/** As values.js names them: they could reorder or hide what is beside them. */
const INVISIBLE = /(?![\n\t\u200c\u200d])[\p{C}\u2028\u2029]/gu

/** @type {import('@codemirror/state').StateEffectType<{ from: number, to: number } | undefined>} */
const setWrong = StateEffect.define()

/** The word that the database did not understand, until the text is changed. */
const wrong = StateField.define({
  create: () => Decoration.none,
  update(marked, { effects, docChanged }) {
    const set = effects.find((effect) => effect.is(setWrong))
    if (set === undefined) return docChanged ? Decoration.none : marked
    return set.value === undefined
      ? Decoration.none
      : Decoration.set([WRONG.range(set.value.from, set.value.to)])
  },
  provide: (field) => EditorView.decorations.from(field),
})
const WRONG = Decoration.mark({ class: 'wrong' })

/** Custom properties of the page reach into the shadow root. */
const COLOURS = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: 'var(--accent)', fontWeight: '600' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--good)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--warn)' },
  { tag: [tags.typeName, tags.standard(tags.name)], color: 'var(--warn)' },
  { tag: [tags.comment], color: 'var(--soft)', fontStyle: 'italic' },
])

const THEME = EditorView.theme({
  '&': { backgroundColor: 'var(--panel)', color: 'var(--text)', fontSize: '0.8125rem' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.55', minHeight: '9rem', maxHeight: '45vh' },
  '.cm-content': { padding: '0.5rem 0', caretColor: 'var(--text)' },
  '.cm-gutters': {
    backgroundColor: 'var(--panel)',
    color: 'var(--soft)',
    borderRight: '1px solid var(--line)',
  },
  '.cm-activeLine': { backgroundColor: 'color-mix(in srgb, var(--raised) 55%, transparent)' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    backgroundColor: 'color-mix(in srgb, var(--accent) 28%, transparent)',
  },
  '&.cm-focused .cm-matchingBracket': { backgroundColor: 'var(--accent-soft)' },
  '.cm-placeholder': { color: 'var(--soft)' },
  '.cm-specialChar': { color: 'var(--warn)' },
  '.wrong': { textDecoration: 'underline wavy var(--bad)', backgroundColor: 'var(--bad-soft)' },
  '.cm-tooltip': {
    border: '1px solid var(--line)',
    borderRadius: 'var(--radius)',
    backgroundColor: 'var(--panel)',
    boxShadow: '0 6px 24px rgb(0 0 0 / 0.16)',
    overflow: 'hidden',
  },
  '.cm-tooltip.cm-tooltip-autocomplete > ul': {
    fontFamily: 'var(--mono)',
    maxWidth: 'min(40rem, 90vw)',
    maxHeight: 'none',
  },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]': {
    backgroundColor: 'var(--accent)',
    color: 'var(--on-accent)',
  },
  '.cm-completionDetail': { marginLeft: '0.75rem', color: 'var(--soft)', fontStyle: 'normal' },
  'li[aria-selected] .cm-completionDetail': { color: 'inherit' },
})
