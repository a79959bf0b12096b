"""Train your own agent with sb3-contrib on placeopt's clusters; keep it as plain arrays.

The output compares it with the greedy choice.

python examples/train_agent.py [POLICY.npz]      (needs placeopt[rl])
"""

from __future__ import annotations

import sys

from placeopt import plugins

try:
    from sb3_contrib import MaskablePPO
except ImportError:
    raise plugins.MissingExtraError("this example", "rl") from None

WEIGHTS = (0.4, 0.3, 0.3)  # latency, cost, inequality
batch = plugins.multi_cluster_batch(num_envs=32, clusters=4, rate=5.0, steps=50)
shape = plugins.Shape(batch.num_features, len(batch.rewards), hidden=(16,), score=batch.score)

env = plugins.BatchVecEnv(batch, WEIGHTS)
agent = MaskablePPO(
    plugins.DeepSetsActorCritic,
    env,
    n_steps=50,
    batch_size=800,
    n_epochs=4,
    gamma=0.95,
    policy_kwargs={"shape": shape},
    seed=1,
)
agent.learn(16_000)

arrays = plugins.numpy_arrays(agent.policy.actor)
policy = plugins.TrainedPolicy(
    "multi-cluster", batch.rewards, shape, arrays, {"rate": 5.0}, WEIGHTS
)
for name, choose in (("trained", policy.act), ("greedy", plugins.greedy_choice(batch.score))):
    played = plugins.evaluate_policy(batch, choose, episodes=128, weights=WEIGHTS, seed=10**6)
    facts = plugins.summary(played)
    print(
        name,
        ", ".join(
            f"{key} {facts[key][0]:.4g} ± {facts[key][1]:.2g}"
            for key in ("reward", "acceptance", "latency_ms", "cost")
        ),
    )

if len(sys.argv) > 1:
    plugins.write_policy(policy, sys.argv[1])
