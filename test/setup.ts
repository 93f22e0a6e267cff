import fc from 'fast-check';

/** Property tests repeat: the same cases every time, others with `FC_SEED=<number>`. */
fc.configureGlobal({ seed: Number(process.env.FC_SEED ?? 20_261_121) });
