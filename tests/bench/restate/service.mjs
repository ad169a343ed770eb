// Three durable steps that return what the script provider answers; listens on the port it is given.
import * as restate from "@restatedev/restate-sdk";

const three = restate.service({
  name: "three",
  handlers: {
    run: async (ctx, task) => {
      let last = task;
      for (const movement of ["plan", "write", "review"])
        last = await ctx.run(movement, async () => `I did it.\n\n[${movement.toUpperCase()}:1]`);
      return last;
    },
  },
});
restate.endpoint().bind(three).listen(Number(process.argv[2]));
