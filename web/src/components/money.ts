/** An amount of money. Without a currency, that of the operator's prices. */
export interface Cost {
  amount: number;
  currency?: string;
}

/** Returns an amount of money as a text; small amounts keep two significant digits. */
export function moneyText({ amount, currency }: Cost): string {
  const digits = Math.abs(amount) >= 1 || amount === 0 ? { maximumFractionDigits: 2 } : { maximumSignificantDigits: 2 };
  return amount.toLocaleString(undefined, currency === undefined ? digits : { style: "currency", currency, ...digits, minimumFractionDigits: 0 });
}
