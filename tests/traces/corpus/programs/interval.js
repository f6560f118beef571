// setInterval of the given ms, with work that varies; logs when each job began.
const log = require("fs").openSync(process.env.LOG, "w");
setInterval(() => {
  const began = process.hrtime.bigint();
  require("fs").writeSync(log, `${began}\n`);
  const until = began + BigInt(Math.floor(Math.random() * 3e6));
  while (process.hrtime.bigint() < until);
}, Number(process.argv[2]));
