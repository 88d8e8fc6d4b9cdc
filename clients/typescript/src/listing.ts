/** A page of a list. */
export interface Page<Item> {
  /** The items of the page, in the order of the list. */
  items: Item[];
  /** The cursor of the next page. Absent on the last page. */
  nextCursor?: string;
}

/**
 * A list that the server returns in pages. Await it for one page, or iterate over the items of all pages. It sends its
 * requests when it is awaited or iterated.
 */
export class Listing<Item, P extends Page<Item> = Page<Item>> implements AsyncIterable<Item>, Promise<P> {
  readonly [Symbol.toStringTag] = "Listing";

  constructor(
    private readonly request: (cursor: string | undefined) => Promise<P>,
    private readonly start?: string,
  ) {}

  /** Requests one page. */
  then<A = P, B = never>(
    onFulfilled?: ((page: P) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.request(this.start).then(onFulfilled, onRejected);
  }

  /** Requests one page. */
  catch<B = never>(onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<P | B> {
    return this.then(undefined, onRejected);
  }

  /** Requests one page. */
  finally(onFinally?: (() => void) | null): Promise<P> {
    return this.request(this.start).finally(onFinally);
  }

  /** Yields the pages. */
  async *pages(): AsyncGenerator<P, void, undefined> {
    for (let cursor = this.start; ; ) {
      const page = await this.request(cursor);
      yield page;
      if (page.nextCursor === undefined) return;
      cursor = page.nextCursor;
    }
  }

  /** Yields the items of all pages. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    for await (const { items } of this.pages()) yield* items;
  }
}
