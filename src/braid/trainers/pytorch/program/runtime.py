# How the plan is run.

MAKER = {value: s for s, stage in STAGES.items() for value in stage.gives}
RANKS = 1 + max(rank for stage in STAGES.values() for rank in stage.ranks)


def readers_of(value):
    return [s for s, stage in STAGES.items() if value in stage.takes]


def rank_of(stage, sample):
    """Which rank of a stage has the sample: micro-batches go to its replicas in turn."""
    return stage.ranks[sample // stage.micro_batch % len(stage.ranks)]


def overlaps(first, count, stage):
    """Samples first to first + count by the stage's ranks that have them: (rank, first, count)."""
    last = first + count
    while first < last:
        here = min(last - first, stage.micro_batch - first % stage.micro_batch)
        yield rank_of(stage, first), first, here
        first += here


def made_up(name, shape, below, first, count, options):
    """Some samples of an input, or of what a loss wants: whole numbers below a bound, or reals.

    Put your own data here. Samples are counted over all iterations; four iterations' repeat.
    """
    rows = []
    for sample in range(first, first + count):
        seed = zlib.crc32(f"{options.seed} {name} {sample % (4 * BATCH)}".encode())
        random = torch.Generator().manual_seed(seed)
        if below is None:
            rows.append(torch.randn(shape, generator=random, dtype=torch.float64).to(options.dtype))
        else:
            rows.append(torch.randint(below, shape, generator=random))
    return torch.stack(rows).to(options.device)


def loss_of(value, y, first, options):
    """Cross entropy, or half the squared error: these samples' share of the mean over the batch."""
    shape, below = TARGETS[value]
    wanted = made_up(f"wanted of {value}", shape, below, first, len(y), options).flatten()
    y = y.reshape(len(wanted), -1)
    if below is None:
        loss = (y.squeeze(1) - wanted).square().sum() / 2
    else:
        loss = F.cross_entropy(y, wanted, reduction="sum")
    return loss / (math.prod(shape) * BATCH)


def initialise(modules, options):
    """The same weights for the same parameter, whichever process has it; tied ones are one tensor."""
    first = {}
    for module in modules:
        for name, tensor in (*module.named_parameters(), *module.named_buffers()):
            name = TIED.get(name, name)
            if name in first:
                continue
            seed = zlib.crc32(f"{options.seed} {name}".encode())
            if tensor.dim() == 1:
                tensor.data.fill_(0 if name.endswith(("bias", "mean")) else 1)
            else:
                numbers = torch.randn(
                    tensor.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
                )
                tensor.data.copy_(numbers * (tensor[0].numel() ** -0.5))
            first[name] = tensor
        for name, _ in list(module.named_parameters()):
            path, _, leaf = name.rpartition(".")
            setattr(module.get_submodule(path), leaf, first[TIED.get(name, name)])
        module.to(options.device, options.dtype)


class Update:
    """Parameters that the same ranks hold: once an iteration, these sum their gradients and step.

    From ZeRO-1 on a rank keeps the optimizer's state of its part alone, and gathers the others'
    parts; from ZeRO-2 on it gets the sum of its part of the gradients alone.
    """

    def __init__(self, parameters, ranks, own_rank, zero, options):
        self.ranks, self.zero, self.group = ranks, zero, None
        parts = len(ranks) if zero else 1
        self.own = ranks.index(own_rank) if zero else 0
        size = sum(p.numel() for p in parameters)
        self.weights = parameters[0].new_zeros(size + -size % parts)
        self.gradients = torch.zeros_like(self.weights)
        first = 0
        for p in parameters:
            last = first + p.numel()
            self.weights[first:last] = p.detach().flatten()
            p.data = self.weights[first:last].view_as(p)
            p.grad = self.gradients[first:last].view_as(p)
            first = last
        self.parts = self.weights.detach().chunk(parts)
        exact = torch.float64 if options.dtype == torch.float64 else torch.float32
        self.copy = nn.Parameter(self.parts[self.own].to(exact, copy=True))
        optimizer = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}[options.optimizer]
        self.optimizer = optimizer([self.copy], lr=options.lr)

    def step(self):
        if len(self.ranks) > 1 and self.zero < 2:
            dist.all_reduce(self.gradients, group=self.group)
        elif len(self.ranks) > 1:
            for part, rank in zip(self.gradients.chunk(len(self.ranks)), self.ranks):
                dist.reduce(part, rank, group=self.group)
        self.copy.grad = self.gradients.chunk(len(self.parts))[self.own].to(self.copy.dtype)
        self.optimizer.step()
        self.parts[self.own].copy_(self.copy.detach())
        if len(self.parts) > 1:
            dist.all_gather(list(self.parts), self.parts[self.own].clone(), group=self.group)
        self.gradients.zero_()


class Worker:
    """What one rank does: its stages' passes in their order, then the update of their parameters."""

    def __init__(self, rank, options):
        self.rank, self.options = rank, options
        self.modules = {s: x.module() for s, x in STAGES.items() if rank in x.ranks}
        initialise(self.modules.values(), options)
        self.order = next(x for s, x in ORDER.items() if s in self.modules).split()
        self.forwards = dict.fromkeys(self.modules, 0)
        self.stash = {s: [] for s in self.modules}
        self.sending, self.kept = [], {}
        self.open_channels()
        self.form_groups()

    def open_channels(self):
        """A process group for each value, its reader and direction, so that messages of one kind
        overtake no others of their kind, and wait for none of another."""
        self.channels = {}
        for reader, stage in STAGES.items():
            for value in stage.takes:
                if value in INPUTS:
                    continue
                maker = STAGES[MAKER[value]]
                ranks = sorted({*maker.ranks, *stage.ranks})
                pairs = sorted({(rank_of(maker, i), rank_of(stage, i)) for i in range(BATCH)})
                for gradient in (False, True):
                    group = dist.new_group(ranks)
                    self.channels[value, reader, gradient] = group
                    # The first message of two ranks connects them, which they do in one order.
                    for source, target in (reversed(pair) if gradient else pair for pair in pairs):
                        greeting = torch.zeros(1, device=self.options.device)
                        if source != target and self.rank == source:
                            dist.send(greeting, target, group=group)
                        elif source != target and self.rank == target:
                            dist.recv(greeting, source, group=group)

    def form_groups(self):
        own = {}
        for s, module in self.modules.items():
            for name, parameter in module.named_parameters():
                name = TIED.get(name, name)
                own.setdefault(SHARED.get(name, (s,)), {})[name] = parameter
        self.updates = []
        for key in [*((s,) for s in STAGES), *sorted(set(SHARED.values()))]:
            ranks = sorted({rank for s in key for rank in STAGES[s].ranks})
            group = dist.new_group(ranks) if len(ranks) > 1 else None
            if key in own:
                zero = min(STAGES[s].zero for s in key)
                parameters = [own[key][name] for name in sorted(own[key])]
                self.updates.append(Update(parameters, ranks, self.rank, zero, self.options))
                self.updates[-1].group = group

    def send(self, tensor, channel, first, receivers):
        self.sending = [(work, part) for work, part in self.sending if not work.is_completed()]
        for rank, sample, count in overlaps(first, len(tensor), receivers):
            part = tensor[sample - first : sample - first + count].contiguous()
            if rank == self.rank:
                self.kept[channel, sample] = part
            else:
                work = dist.isend(part, rank, group=self.channels[channel], tag=sample)
                self.sending.append((work, part))

    def receive(self, channel, first, count, senders):
        parts = []
        for rank, sample, here in overlaps(first, count, senders):
            if rank == self.rank:
                parts.append(self.kept.pop((channel, sample)))
                continue
            shape = (here, *SHAPES[channel[0]])
            part = torch.empty(shape, dtype=self.options.dtype, device=self.options.device)
            dist.recv(part, rank, group=self.channels[channel], tag=sample)
            parts.append(part)
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def forward(self, s):
        stage = STAGES[s]
        micro_batch = self.forwards[s] * len(stage.ranks) + stage.ranks.index(self.rank)
        first, count = micro_batch * stage.micro_batch, stage.micro_batch
        self.forwards[s] += 1
        inputs = []
        for value in stage.takes:
            if value in INPUTS:
                x = made_up(value, *INPUTS[value], self.first_sample + first, count, self.options)
            else:
                x = self.receive((value, s, False), first, count, STAGES[MAKER[value]])
                x.requires_grad_()
            inputs.append(x)
        outputs = dict(zip(stage.gives, self.modules[s](*inputs)))
        losses = [
            loss_of(value, y, self.first_sample + first, self.options)
            for value, y in outputs.items()
            if value in TARGETS
        ]
        self.loss += sum(loss.detach() for loss in losses)
        self.stash[s].append((first, inputs, outputs, losses))
        for value, y in outputs.items():
            for reader in readers_of(value):
                self.send(y.detach(), (value, reader, False), first, STAGES[reader])

    def backward(self, s):
        stage = STAGES[s]
        first, inputs, outputs, losses = self.stash[s].pop(0)
        ends, gradients = list(losses), [None] * len(losses)
        for value, y in outputs.items():
            for reader in readers_of(value):
                ends.append(y)
                gradients.append(
                    self.receive((value, reader, True), first, len(y), STAGES[reader])
                )
        torch.autograd.backward(ends, gradients)
        for value, x in zip(stage.takes, inputs):
            if value not in INPUTS:
                self.send(x.grad, (value, s, True), first, STAGES[MAKER[value]])

    def iteration(self, number):
        self.first_sample = number * BATCH
        self.forwards = dict.fromkeys(self.modules, 0)
        self.loss = torch.zeros((), dtype=self.options.dtype, device=self.options.device)
        for each in self.order:
            (self.forward if each[0] == "F" else self.backward)(int(each[1:]))
        for update in self.updates:
            update.step()
        for work, _ in self.sending:
            work.wait()
        self.sending = []
        dist.all_reduce(self.loss)
        return self.loss.item()


class Whole:
    """The whole model in one process, the whole batch in one pass: what the plan is held against."""

    def __init__(self, options):
        self.rank, self.options = 0, options
        self.modules = {s: stage.module() for s, stage in STAGES.items()}
        initialise(self.modules.values(), options)
        parameters = {id(p): p for x in self.modules.values() for p in x.parameters()}
        self.update = Update(list(parameters.values()), [0], 0, 0, options)

    def iteration(self, number):
        first, loss = number * BATCH, 0
        values = {
            name: made_up(name, *what, first, BATCH, self.options) for name, what in INPUTS.items()
        }
        for s, stage in STAGES.items():
            outputs = self.modules[s](*(values[value] for value in stage.takes))
            values.update(zip(stage.gives, outputs))
            for value in stage.gives:
                if value in TARGETS:
                    loss = loss + loss_of(value, values[value], first, self.options)
        loss.backward()
        self.update.step()
        return loss.item()


def main():
    parser = argparse.ArgumentParser(description="Trains by a plan of braid; see the top of the file.")
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--dtype", choices=["float64", "float32", "bfloat16"], default=DTYPE)
    parser.add_argument("--optimizer", choices=["adam", "sgd"], default="adam")
    parser.add_argument("--lr", type=float, default=0.001)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.dtype = getattr(torch, options.dtype)
    options.device = torch.device("cpu")
    if torch.cuda.is_available():
        options.device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        torch.cuda.set_device(options.device)
    if "RANK" in os.environ:
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
        if dist.get_world_size() != RANKS:
            sys.exit(f"the plan has {RANKS} ranks, and {dist.get_world_size()} were started")
        worker = Worker(dist.get_rank(), options)
    else:
        worker = Whole(options)
    for iteration in range(options.iterations):
        start = time.perf_counter()
        loss = worker.iteration(iteration)
        if worker.rank == 0:
            took = time.perf_counter() - start
            print(f"iteration {iteration + 1:4}  loss {loss:.15g}  {BATCH / took:.4g} samples/s", flush=True)
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
