import { type RefObject, useCallback, useEffect, useState } from "react";

// Rows are rendered in blocks, so that a scroll renders once in several rows.
const block = 16;

/** The rows of a long list that are in view. */
export interface RowWindow {
  /** The index of the first row to render, and the index after the last one. */
  first: number;
  end: number;
  /** Scrolls to a row: as little as shows it if it is next to the rows in view, else to the middle. */
  show: (index: number) => void;
}

/**
 * Renders only the rows of a list that are in view, for lists of thousands of rows of one height in pixels. The element
 * scrolls; `offset` is the height of what its content has above the rows, and sticks.
 */
export function useRowWindow(scroller: RefObject<HTMLElement | null>, count: number, rowHeight: number, offset = 0): RowWindow {
  const [range, setRange] = useState({ first: 0, end: block * 4 });
  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const measure = () => {
      const top = Math.floor(element.scrollTop / rowHeight / block) * block;
      const first = Math.max(0, top - block);
      const end = top + Math.ceil((element.clientHeight / rowHeight + block * 2) / block) * block;
      setRange((last) => (last.first === first && last.end === end ? last : { first, end }));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    element.addEventListener("scroll", measure, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", measure);
    };
  }, [scroller, rowHeight, count === 0]);
  const show = useCallback(
    (index: number) => {
      const element = scroller.current;
      if (!element) return;
      const top = index * rowHeight;
      const space = element.clientHeight - offset - rowHeight;
      const isFar = top < element.scrollTop - 2 * rowHeight || top > element.scrollTop + space + 2 * rowHeight;
      if (isFar) element.scrollTop = top - space / 2;
      else if (top < element.scrollTop) element.scrollTop = top;
      else if (top > element.scrollTop + space) element.scrollTop = top - space;
    },
    [scroller, rowHeight, offset],
  );
  return { first: Math.min(range.first, count), end: Math.min(range.end, count), show };
}
