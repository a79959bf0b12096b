"""Train your own agent with sb3-contrib on placeopt's clusters; keep it as plain arrays.

The output compares it with the greedy choice.

python examples/train_agent.py [POLICY.npz]      (needs placeopt[rl])
"""

from __future__ import annotations

import sys

from placeopt.plugins import MissingExtraError

try:
    from sb3_contrib import MaskablePPO
except ImportError:
    raise MissingExtraError("this example", "rl") from None

from placeopt.plugins import (
    BatchVecEnv,
    DeepSetsActorCritic,
    Shape,
    TrainedPolicy,
    evaluate_policy,
    greedy_choice,
    multi_cluster_batch,
    numpy_arrays,
    summary,
    write_policy,
)

WEIGHTS = (0.4, 0.3, 0.3)  # latency, cost, inequality
batch = multi_cluster_batch(num_envs=32, clusters=4, rate=5.0, steps=50)
shape = Shape(batch.num_features, len(batch.rewards), hidden=(16,), score=batch.score)

env = BatchVecEnv(batch, WEIGHTS)
agent = MaskablePPO(
    DeepSetsActorCritic,
    env,
    n_steps=50,
    batch_size=800,
    n_epochs=4,
    gamma=0.95,
    policy_kwargs={"shape": shape},
    seed=1,
)
agent.learn(16_000)

policy = TrainedPolicy(
    "multi-cluster", batch.rewards, shape, numpy_arrays(agent.policy.actor), {"rate": 5.0}, WEIGHTS
)
for name, choose in (("trained", policy.act), ("greedy", greedy_choice(batch.score))):
    facts = summary(evaluate_policy(batch, choose, episodes=128, weights=WEIGHTS, seed=10**6))
    print(
        name,
        ", ".join(
            f"{key} {facts[key][0]:.4g} ± {facts[key][1]:.2g}"
            for key in ("reward", "acceptance", "latency_ms", "cost")
        ),
    )

if len(sys.argv) > 1:
    write_policy(policy, sys.argv[1])
