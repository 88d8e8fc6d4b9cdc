const counts = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });
const amounts = new Intl.NumberFormat(undefined, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const small = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 2 });

/** Returns a count as a short text: 950, 1.2K, 3.4M. */
export const countText = (value: number) => counts.format(value);

/** Returns an amount of money without its currency. */
export const amountText = (value: number) => (value > 0 && value < 0.01 ? small.format(value) : amounts.format(value));
