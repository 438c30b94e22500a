// Goes through a trace as an editor does, and prints what it is told.
//
// node session.js PORT NAME ROOT, where NODE_PATH has the package @vscode/debugadapter-testsupport.
const fs = require('fs');
const path = require('path');
const { DebugClient } = require('@vscode/debugadapter-testsupport');

const [port, name, root] = process.argv.slice(2);
const client = new DebugClient('node', '', 'spelunk');
client.defaultTimeout = 60_000;
const say = (...words) => console.log(words.join(' '));

// Where the guest's own code is; what libraries do depends on their version.
function shown(frame) {
    const file = frame.source && frame.source.path;
    return file ? `${frame.name} at ${path.relative(root, file)}:${frame.line}` : frame.name;
}

async function stack() {
    const { body } = await client.stackTraceRequest({ threadId: 1 });
    const own = body.stackFrames.filter(frame =>
        frame.id === 1000 || frame.source && (frame.source.path || '').includes('examples'));
    own.forEach(frame => say('    ', shown(frame)));
}

// A request after which it stops.
async function move(request, args = {}) {
    const [event] = await Promise.all([
        client.waitForEvent('stopped'),
        client.customRequest(request, { threadId: 1, ...args }),
    ]);
    say(`${request}: ${event.body.reason}`, event.body.text || '');
    await stack();
}

async function scopes() {
    const { body } = await client.scopesRequest({ frameId: 1000 });
    for (const scope of body.scopes.filter(scope => !scope.expensive)) {
        say('  ', scope.name);
        const { body } = await client.variablesRequest({ variablesReference: scope.variablesReference });
        for (const variable of body.variables.filter(variable => !variable.name.includes('hash'))) {
            say('    ', variable.name, '=', variable.value);
            if (variable.variablesReference > 0) {
                const { body } = await client.variablesRequest({ variablesReference: variable.variablesReference });
                body.variables.forEach(part => say('      ', part.name, '=', part.value, `(${part.evaluateName})`));
            }
        }
    }
}

async function evaluate(expression, context) {
    try {
        const { body } = await client.evaluateRequest({ expression, context });
        say(`${expression} = ${body.result}`);
    } catch (error) {
        say(`${expression}: ${error.message}`);
    }
}

const told = response => response.body.breakpoints.map(({ verified, message }) => message || verified).join('; ');

async function bank() {
    const file = path.join(root, 'examples/bank/src/lib.rs');
    const lines = fs.readFileSync(file, 'utf8').split('\n');
    const line = text => 1 + lines.findIndex(line => line.includes(text));
    const breakpoints = [line('#[harness]'), line('assert!(total == self.expected'), 1].map(line => ({ line }));
    say('lines:', told(await client.setBreakpointsRequest({ source: { path: file }, breakpoints })));
    await client.setExceptionBreakpointsRequest({ filters: ['failure'] });
    await move('configurationDone');
    await move('next');
    await move('next');
    await scopes();
    await move('continue');
    await scopes();
    const { body } = await client.exceptionInfoRequest({ threadId: 1 });
    say(body.exceptionId, body.description);
    await move('next');
    await move('stepBack');
    await move('reverseContinue');
}

async function described() {
    const names = ['put', 'nothing'].map(name => ({ name }));
    say('names:', told(await client.setFunctionBreakpointsRequest({ breakpoints: names })));
    await move('configurationDone');
    await move('continue');
    await scopes();
    await client.setFunctionBreakpointsRequest({ breakpoints: [] });
    const { body } = await client.dataBreakpointInfoRequest({ name: 'slots', variablesReference: 2 });
    say('data:', body.dataId, body.accessTypes);
    const data = ['@slots.used[2]', 'nothing', '1 +'].map(dataId => ({ dataId }));
    say('data:', told(await client.setDataBreakpointsRequest({ breakpoints: data })));
    await move('continue');
    await evaluate('puts * 2 > 4', 'watch');
    await evaluate('u8[96] == 48 + puts', 'hover');
    await evaluate('nothing', 'watch');
    await evaluate('last @slots.used[0]', 'repl');
    await stack();
    await move('stepOut');
    await move('reverseContinue');
    await move('reverseContinue');
    await client.pauseRequest({ threadId: 1 });
    await client.restartRequest({}).catch(error => say('restart:', error.message));
}

async function main() {
    await client.start(Number(port));
    const { body } = await client.initializeRequest({ adapterID: 'spelunk', clientID: 'test' });
    say(name, Object.keys(body).filter(key => body[key] === true).join(' '));
    await client.customRequest('threads').catch(error => say('threads:', error.message));
    await Promise.all([
        client.waitForEvent('initialized'),
        client.launchRequest({ program: name, trace: 'trace.json' }),
    ]);
    say('threads:', (await client.threadsRequest()).body.threads.map(thread => thread.name).join(' '));
    await { bank, described }[name]();
    await client.disconnectRequest();
    process.exit(0);
}

main().catch(error => {
    console.error(error);
    process.exit(1);
});
