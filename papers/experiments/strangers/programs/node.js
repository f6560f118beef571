// A server's loop: a tick of 10 ms, and answers to itself over a socket in between.
const net = require('net');
const seconds = Number(process.env.SECONDS_TO_RUN), times = [], began = performance.now();
const server = net.createServer((peer) => peer.on('data', (data) => peer.write(JSON.stringify([...data])))).listen(0, '127.0.0.1', () => {
  const client = net.connect(server.address().port, '127.0.0.1');
  client.on('data', () => {});
  setInterval(() => {
    times.push(performance.now());
    let x = 0;
    for (let i = 0; i < 300000; i++) x += Math.sqrt(i);
    client.write('x'.repeat(100 + (x % 2)));
    if (performance.now() - began < seconds * 1000) return;
    process.stdout.write(times.join('\n') + '\n', () => process.exit());
  }, 10);
});
