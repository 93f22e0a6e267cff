/** A span of time that may end before its time. It does not keep the process alive. */
export interface TimeLimit {
  readonly isOver: boolean;
  /** Resolves with its end. */
  readonly over: Promise<null>;
  end(): void;
}

export function createTimeLimit(milliseconds: number): TimeLimit {
  let isOver = false;
  let end = (): void => undefined;
  const over = new Promise<null>((resolve) => {
    const timer = setTimeout(
      () => {
        end();
      },
      Math.max(0, milliseconds),
    );
    timer.unref();
    end = () => {
      isOver = true;
      clearTimeout(timer);
      resolve(null);
    };
  });
  return {
    get isOver() {
      return isOver;
    },
    over,
    end: () => {
      end();
    },
  };
}
