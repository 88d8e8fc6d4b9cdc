import { useCallback, useEffect, useRef, useState } from "react";

const nearEnd = 40;

/** Keeps a scrolling element at its end while its content grows, unless the reader has scrolled away from there. */
export function useEnd() {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const [isAtEnd, setAtEnd] = useState(true);
  const toEnd = useCallback(() => scroller.current && (scroller.current.scrollTop = scroller.current.scrollHeight), []);
  useEffect(() => {
    const element = scroller.current!;
    let top = element.scrollTop;
    const scroll = () => {
      const rest = element.scrollHeight - element.clientHeight - element.scrollTop;
      if (rest < nearEnd) follows.current = true;
      else if (element.scrollTop < top) follows.current = false; // content that grows does not scroll up
      top = element.scrollTop;
      setAtEnd(follows.current);
    };
    const observer = new ResizeObserver(() => {
      if (follows.current) toEnd();
      else scroll();
    });
    observer.observe(content.current!);
    observer.observe(element);
    element.addEventListener("scroll", scroll, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", scroll);
    };
  }, [toEnd]);
  const jump = useCallback(() => {
    follows.current = true;
    setAtEnd(true);
    toEnd();
    scroller.current?.focus({ preventScroll: true });
  }, [toEnd]);
  return { scroller, content, isAtEnd, jump };
}
