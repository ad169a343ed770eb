// Gives grammars to a real llama.cpp: each must parse; some are sampled from. Run in a folder that has
// node-llama-cpp: node llama_grammars.mjs MODEL.gguf GRAMMARS.ndjson EVERY SECONDS
//   GRAMMARS: lines {"name", "grammar", "sample"}; every EVERY-th is sampled from, and each with
//   "sample": true, for SECONDS in all.
// Prints a line of JSON for each grammar: {name, parses, error, text, stop, ms, tokens, slowest}.
import fs from "node:fs";
import path from "node:path";
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";

const [modelPath, grammars, every, seconds] = process.argv.slice(2);
const here = createRequire(path.join(process.cwd(), "x.js"));
const {getLlama, LlamaGrammar, LlamaGrammarEvaluationState, LlamaCompletion} = await import(
  pathToFileURL(here.resolve("node-llama-cpp")).href);
const llama = await getLlama({gpu: false, build: "never", logLevel: "error", maxThreads: 1});
const model = await llama.loadModel({modelPath});
const context = await model.createContext({contextSize: 4096, threads: 1});
const sequence = context.getSequence();
const completion = new LlamaCompletion({contextSequence: sequence});
const until = Date.now() + Number(seconds) * 1000;
let n = 0;

for (const line of fs.readFileSync(grammars, "utf8").split("\n")) {
  if (!line)
    continue;
  const {name, grammar: text, sample} = JSON.parse(line);
  const out = {name, parses: false};
  const start = performance.now();
  try {
    const grammar = new LlamaGrammar(llama, {grammar: text});
    new LlamaGrammarEvaluationState({model, grammar}); // reads it
    out.parses = true;
    out.parse_ms = Math.round(performance.now() - start);
    n++;
    if ((sample || n % Number(every) === 0) && Date.now() < until) {
      let last = performance.now();
      out.slowest = 0;
      out.tokens = 0;
      await sequence.clearHistory();
      const made = await completion.generateCompletionWithMeta("JSON: ", {
        maxTokens: 300, temperature: 1, seed: 1000 + n, grammar,
        onToken: () => {
          const now = performance.now();
          out.slowest = Math.max(out.slowest, Math.round(now - last));
          last = now;
          out.tokens++;
        }
      });
      out.text = made.response;
      out.stop = made.metadata.stopReason;
      out.ms = Math.round(performance.now() - start);
    }
  } catch (error) {
    out.error = String(error.message || error);
  }
  console.log(JSON.stringify(out));
}
process.exit(0);
