// A member of KafkaJS. Its lines are those of ../rules.py.
const fs = require("fs");
const { Kafka, logLevel } = require("kafkajs");

const [broker, group, topic, name, , sessionMs, rebalanceMs, heartbeatMs] = process.argv.slice(2);
const say = (...words) => fs.writeSync(1, [name, ...words].join(" ") + "\n");
const fail = (error) => {
  say("FAILED", String(error).replaceAll("\n", ";"));
  process.exit(1);
};

const kafka = new Kafka({ brokers: [broker], logLevel: logLevel.WARN });
const consumer = kafka.consumer({
  groupId: group,
  sessionTimeout: Number(sessionMs),
  rebalanceTimeout: Number(rebalanceMs),
  heartbeatInterval: Number(heartbeatMs),
  maxWaitTimeInMs: 100,
});
let owned = [];
let leaving = false;
let reading = Promise.resolve(); // until what was read last is committed

function revoked() {
  if (owned.length > 0) say("REVOKED", ...owned);
  owned = [];
}
consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
  owned = payload.memberAssignment[topic] || [];
  say("ASSIGNED", ...owned);
});
consumer.on(consumer.events.REBALANCING, revoked);
consumer.on(consumer.events.CRASH, ({ payload }) => {
  if (!payload.restart) fail(payload.error);
  // It is to join again by itself.
  if (owned.length > 0) say("LOST", ...owned);
  owned = [];
});

async function read({ batch, resolveOffset, heartbeat }) {
  for (const message of batch.messages) say("RECORD", batch.partition, message.offset);
  const next = String(BigInt(batch.lastOffset()) + 1n);
  await consumer.commitOffsets([{ topic, partition: batch.partition, offset: next }]);
  say("COMMITTED", batch.partition, next);
  resolveOffset(batch.lastOffset());
  await heartbeat();
}

async function leave() {
  leaving = true;
  await reading;
  revoked();
  await consumer.disconnect();
  say("LEFT");
  process.exit(0);
}
process.on("SIGTERM", () => leave().catch(fail));

async function main() {
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  await consumer.run({
    autoCommit: false,
    eachBatchAutoResolve: false,
    eachBatch: (payload) => {
      if (leaving) return Promise.resolve();
      const done = read(payload);
      reading = done.catch(() => {}); // KafkaJS handles what fails
      return done;
    },
  });
}
main().catch(fail);
