const secondMs = 1000;
const minuteMs = 60 * secondMs;

/** `18:40`, `Sun 29 Nov, 18:40`: a time in Unix milliseconds as people here write it, with the day unless it is today.
 * One that is less than two minutes away has seconds. */
export function limitTime(at: number, now: number): string {
  const time = new Date(at);
  const two = (value: number): string => String(value).padStart(2, '0');
  const seconds = at - now < 2 * minuteMs ? `:${two(time.getSeconds())}` : '';
  const clock = `${two(time.getHours())}:${two(time.getMinutes())}${seconds}`;
  if (time.toDateString() === new Date(now).toDateString()) return clock;
  const day = time.toLocaleDateString('en-GB', { weekday: 'short', day: 'numeric', month: 'short' });
  return `${day.replace(',', '')}, ${clock}`;
}

/** `2 h 13 min`, `45 s`: the time that is left, rounded up. */
export function limitSpan(waitMs: number): string {
  const seconds = Math.max(0, Math.ceil(waitMs / secondMs));
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.ceil(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  const rest = minutes % 60;
  if (hours < 48) return rest === 0 ? `${hours} h` : `${hours} h ${rest} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** `2:13:05`, `0:45`: a countdown. */
export function limitCountdown(waitMs: number): string {
  const seconds = Math.max(0, Math.ceil(waitMs / secondMs));
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  const two = (value: number): string => String(value).padStart(2, '0');
  return hours === 0 ? `${minutes}:${two(seconds % 60)}` : `${hours}:${two(minutes)}:${two(seconds % 60)}`;
}
