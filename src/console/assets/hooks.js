import { useCallback, useEffect, useRef, useState } from 'preact/hooks'

/**
 * A value that several components follow.
 * @template T
 * @typedef {{ get(): T, set(next: T): void, follow(follower: () => void): () => void }} Store
 */

/**
 * @template T
 * @param {T} initial
 * @returns {Store<T>}
 */
export function createStore(initial) {
  let value = initial
  /** @type {Set<() => void>} */
  const followers = new Set()
  return {
    get: () => value,
    set(next) {
      value = next
      for (const follower of [...followers]) follower()
    },
    follow(follower) {
      followers.add(follower)
      return () => void followers.delete(follower)
    },
  }
}

/**
 * @template T
 * @param {Store<T>} store
 * @returns {T}
 */
export function useStore(store) {
  const [value, setValue] = useState(() => store.get())
  useEffect(() => {
    // It may have changed between the first rendering and this.
    setValue(() => store.get())
    return store.follow(() => setValue(() => store.get()))
  }, [store])
  return value
}

/**
 * @template T
 * @typedef {{ data: T | undefined, failure: unknown, isLoading: boolean, reload(): void }} Loaded
 * `data` stays while it is loaded again.
 */

/**
 * Loads when the component appears, and again when one of `keys` changes, which ends the request before.
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @param {readonly unknown[]} keys
 * @returns {Loaded<T>}
 */
export function useLoad(load, keys) {
  const [turn, setTurn] = useState(0)
  const [state, setState] = useState(
    /** @type {{ data: T | undefined, failure: unknown, isLoading: boolean }} */ ({
      data: undefined,
      failure: undefined,
      isLoading: true,
    }),
  )
  useEffect(() => {
    const aborting = new AbortController()
    setState(({ data }) => ({ data, failure: undefined, isLoading: true }))
    load(aborting.signal).then(
      (data) => {
        if (!aborting.signal.aborted) setState({ data, failure: undefined, isLoading: false })
      },
      (failure) => {
        if (!aborting.signal.aborted) setState(({ data }) => ({ data, failure, isLoading: false }))
      },
    )
    return () => aborting.abort()
  }, [...keys, turn])
  return { ...state, reload: useCallback(() => setTurn((before) => before + 1), []) }
}

/**
 * Whether the rows of a list are to be counted exactly, which costs more than a page of them. It is asked for by a button, for the list as it
 * is then: an address alone makes no database work.
 * @param {string} list its filters
 * @returns {readonly [isExact: boolean, countExactly: () => void]}
 */
export function useExactCount(list) {
  const [counted, setCounted] = useState(/** @type {string | undefined} */ (undefined))
  return [counted === list, () => setCounted(list)]
}

/**
 * An act of a button or a form: one at a time, with its failure beside it. What was typed stays until it has succeeded.
 * @returns {{ isBusy: boolean, failure: unknown, run(work: () => Promise<unknown>): Promise<boolean>, forget(): void }}
 */
export function useAct() {
  const [state, setState] = useState({ isBusy: false, failure: /** @type {unknown} */ (undefined) })
  return {
    ...state,
    forget: () => setState({ isBusy: false, failure: undefined }),
    async run(work) {
      setState({ isBusy: true, failure: undefined })
      try {
        await work()
        setState({ isBusy: false, failure: undefined })
        return true
      } catch (failure) {
        setState({ isBusy: false, failure })
        return false
      }
    },
  }
}

/**
 * Whether an element, or one in it, has the focus, or has lost it as the page has moved or removed something. Not when a person has put it
 * elsewhere.
 * @param {{ current: Element | null }} element
 */
export function useHadFocus(element) {
  const had = useRef(false)
  useEffect(() => {
    const isWithin = (/** @type {Event} */ { target }) =>
      target instanceof Node && element.current?.contains(target) === true
    const focus = (/** @type {Event} */ event) => {
      had.current = isWithin(event)
    }
    const press = (/** @type {Event} */ event) => {
      had.current &&= isWithin(event)
    }
    addEventListener('focusin', focus)
    addEventListener('pointerdown', press)
    return () => {
      removeEventListener('focusin', focus)
      removeEventListener('pointerdown', press)
    }
  }, [])
  return had
}
