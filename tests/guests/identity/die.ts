// Two bugs that throw in one helper.
let ones: i32 = 0;
let twos: i32 = 0;

function die(): void {
  throw new Error("it went wrong");
}

export function one(): void {
  if (++ones == 2) die();
}

export function two(): void {
  if (++twos == 2) die();
}
