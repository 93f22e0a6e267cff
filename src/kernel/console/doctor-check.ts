import type { DoctorCheck } from './command.js';

export function ok(name: string, detail: string): DoctorCheck {
  return { name, status: 'ok', detail, fix: null };
}

export function fail(name: string, detail: string, fix: string): DoctorCheck {
  return { name, status: 'fail', detail, fix };
}

export function warn(name: string, detail: string, fix: string): DoctorCheck {
  return { name, status: 'warn', detail, fix };
}
